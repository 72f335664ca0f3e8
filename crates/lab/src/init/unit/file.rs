//! The syntax of unit files: sections, assignments, comments, continued lines. The loader calls it for fragments and drop-ins.

/// One `key=value` of a unit file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// `Unit`, `Service`, `Install`, …
    pub section: String,
    /// The directive.
    pub key: String,
    /// Its value, continued lines joined, white space around it removed.
    pub value: String,
}

/// What a file says, and the lines that say nothing understandable.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// In the order of the file.
    pub assignments: Vec<Assignment>,
    /// Each with its line number.
    pub complaints: Vec<String>,
}

/// Reads the text of one file.
pub fn parse(text: &str) -> Parsed {
    let mut parsed = Parsed::default();
    let mut section: Option<String> = None;
    for (number, line) in logical_lines(text) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = Some(name.to_owned());
            continue;
        }
        match (line.split_once('='), &section) {
            (None, _) => parsed.complaints.push(format!("line {number}: neither a section nor an assignment")),
            (Some(_), None) => parsed.complaints.push(format!("line {number}: assignment outside of a section")),
            (Some((key, value)), Some(section)) => {
                parsed.assignments.push(Assignment {
                    section: section.clone(),
                    key: key.trim().to_owned(),
                    value: value.trim().to_owned(),
                });
            }
        }
    }
    parsed
}

/// Joins continued lines and drops comments, also those between two parts of a continued line.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut pending: Option<(usize, String)> = None;
    for (index, raw) in text.lines().enumerate() {
        let trimmed = raw.trim_start();
        if trimmed.starts_with(['#', ';']) || (trimmed.is_empty() && pending.is_none()) {
            continue;
        }
        let (number, mut line) = pending.take().unwrap_or((index + 1, String::new()));
        if let Some(part) = raw.strip_suffix('\\') {
            line.push_str(part);
            line.push(' ');
            pending = Some((number, line));
        } else {
            line.push_str(raw);
            lines.push((number, line.trim().to_owned()));
        }
    }
    lines.extend(pending.map(|(number, line)| (number, line.trim().to_owned())));
    lines.retain(|(_, line)| !line.is_empty());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assignment(section: &str, key: &str, value: &str) -> Assignment {
        Assignment { section: section.into(), key: key.into(), value: value.into() }
    }

    #[test]
    fn sections_comments_and_continued_lines_are_read() {
        let parsed =
            parse("# top\n[Unit]\nAfter = a.service\n\n[Service]\nExecStart=/bin/x \\\n# between\n  --flag \\\n  two\n; end\nRestart=\n");
        assert_eq!(
            parsed.assignments,
            [
                assignment("Unit", "After", "a.service"),
                assignment("Service", "ExecStart", "/bin/x    --flag    two"),
                assignment("Service", "Restart", "")
            ]
        );
        assert!(parsed.complaints.is_empty());
    }

    #[test]
    fn lines_that_mean_nothing_are_named_with_their_number() {
        let parsed = parse("Early=1\n[Unit]\nnonsense\nAfter=x.target\n");
        assert_eq!(parsed.assignments.len(), 1);
        assert_eq!(parsed.complaints.len(), 2);
        assert!(parsed.complaints[1].starts_with("line 3:"));
    }

    #[test]
    fn a_file_that_ends_in_a_continued_line_keeps_it() {
        assert_eq!(parse("[Unit]\nAfter=a.service \\").assignments, [assignment("Unit", "After", "a.service")]);
    }
}
