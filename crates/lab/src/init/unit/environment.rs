//! Environment files (`EnvironmentFile=`) and assignments (`Environment=`).

use super::words;

/// Reads `NAME=value` words; those that are none are returned as complaints.
pub fn assignments(value: &str, complaints: &mut Vec<String>) -> Vec<(String, String)> {
    let words = words::split(value).unwrap_or_else(|error| {
        complaints.push(error.to_string());
        Vec::new()
    });
    words
        .into_iter()
        .filter_map(|word| match word.split_once('=') {
            Some((name, value)) if valid_name(name) => Some((name.to_owned(), value.to_owned())),
            _ => {
                complaints.push(format!("{word:?} is no assignment of a variable"));
                None
            }
        })
        .collect()
}

/// Reads the text of an environment file, with its shell-like quoting but without any expansion.
pub fn file(text: &str) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    let mut characters = text.chars().peekable();
    while characters.peek().is_some() {
        let line = value_of_line(&mut characters);
        let line = line.trim_start();
        if line.starts_with(['#', ';']) {
            continue;
        }
        if let Some((name, value)) = line.split_once('=').filter(|(name, _)| valid_name(name.trim())) {
            variables.push((name.trim().to_owned(), value.to_owned()));
        }
    }
    variables
}

/// One line, its quotes resolved; a quoted value may hold line ends.
fn value_of_line(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let mut line = String::new();
    let mut quote: Option<char> = None;
    let mut kept = 0;
    let comment = characters.peek().is_some_and(|first| ['#', ';'].contains(first));
    while let Some(character) = characters.next() {
        match (character, quote) {
            ('\n', None) => break,
            _ if comment => line.push(character),
            ('\\', None | Some('"')) => match characters.next() {
                Some('\n') | None => {}
                Some(escaped) => {
                    if quote.is_some() && !['"', '\\', '`', '$'].contains(&escaped) {
                        line.push('\\');
                    }
                    line.push(escaped);
                    kept = line.len();
                }
            },
            ('"' | '\'', None) => quote = Some(character),
            (_, Some(open)) if open == character => {
                quote = None;
                kept = line.len();
            }
            ('=', None) if kept == 0 => {
                line.push('=');
                while characters.next_if(|c| *c == ' ' || *c == '\t').is_some() {}
                kept = line.len();
            }
            _ => line.push(character),
        }
    }
    let trimmed = line.trim_end().len().max(kept);
    line.truncate(trimmed);
    line
}

fn valid_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_file_kubeadm_writes_is_read() {
        assert_eq!(
            file("KUBELET_KUBEADM_ARGS=\"--container-runtime-endpoint=unix:///run/containerd/containerd.sock --v=2\"\n"),
            pairs(&[("KUBELET_KUBEADM_ARGS", "--container-runtime-endpoint=unix:///run/containerd/containerd.sock --v=2")])
        );
    }

    #[test]
    fn comments_quotes_and_continued_lines_are_understood() {
        let text = "# note = 'x\n; other\nA=1\nB='two words' \nC=a\\\nb\nD=\"x\\\"y\"\nE = spaced  \nbad line\n9=no\nF=\nG=a=b #c\n";
        assert_eq!(
            file(text),
            pairs(&[("A", "1"), ("B", "two words"), ("C", "ab"), ("D", "x\"y"), ("E", "spaced"), ("F", ""), ("G", "a=b #c")])
        );
    }

    #[test]
    fn assignments_name_what_they_cannot_read() {
        let mut complaints = Vec::new();
        assert_eq!(assignments("\"A=b c\" D=e nonsense", &mut complaints), pairs(&[("A", "b c"), ("D", "e")]));
        assert_eq!(complaints.len(), 1);
    }
}
