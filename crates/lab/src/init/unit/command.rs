//! Command lines of services: prefixes, words, and variables. Parsed once when a unit is loaded, expanded at each start.

use std::collections::BTreeMap;

use super::words::{self, UnbalancedQuotes};

/// One command of `ExecStart=` and its like.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is one prefix of the command line")]
pub struct CommandLine {
    /// `-`: a failure does not count.
    pub ignore_failure: bool,
    /// `+` or `!`: run as root whatever `User=` says.
    pub privileged: bool,
    /// `:`: variables stay as they are.
    pub literal_variables: bool,
    /// `@`: the word behind the program is its name for itself.
    pub named: bool,
    /// Program and arguments, quotes removed, specifiers not yet replaced.
    pub words: Vec<String>,
}

/// A command line that cannot be run.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidCommand {
    /// Quotes.
    #[error(transparent)]
    Quotes(#[from] UnbalancedQuotes),
    /// Nothing to run.
    #[error("a command without a program")]
    NoProgram,
}

/// Reads the commands of one assignment; a lone `;` separates several.
pub fn parse(value: &str) -> Result<Vec<CommandLine>, InvalidCommand> {
    let words = words::split(value)?;
    words.split(|word| word == ";").map(command).collect()
}

fn command(words: &[String]) -> Result<CommandLine, InvalidCommand> {
    let (program, arguments) = words.split_first().ok_or(InvalidCommand::NoProgram)?;
    let mut parsed = CommandLine { ignore_failure: false, privileged: false, literal_variables: false, named: false, words: Vec::new() };
    let mut rest = program.as_str();
    while let Some(prefix) = rest.chars().next() {
        match prefix {
            '-' => parsed.ignore_failure = true,
            '+' | '!' => parsed.privileged = true,
            ':' => parsed.literal_variables = true,
            '@' => parsed.named = true,
            _ => break,
        }
        rest = &rest[1..];
    }
    if rest.is_empty() {
        return Err(InvalidCommand::NoProgram);
    }
    parsed.words.push(rest.to_owned());
    parsed.words.extend(arguments.iter().map(|word| if word == "\\;" { ";".to_owned() } else { word.clone() }));
    Ok(parsed)
}

/// Replaces variables: `$NAME` as a word of its own becomes any number of words, `${NAME}` anywhere exactly its value, `$$` a dollar.
pub fn expand(words: &[String], environment: &BTreeMap<String, String>) -> Vec<String> {
    words.iter().flat_map(|word| expand_word(word, environment)).collect()
}

fn expand_word(word: &str, environment: &BTreeMap<String, String>) -> Vec<String> {
    let lone = word.strip_prefix('$').filter(|name| !name.is_empty() && !name.starts_with(['{', '$']));
    if let Some(name) = lone {
        let value = environment.get(name).map(String::as_str).unwrap_or_default();
        return words::split(value).unwrap_or_else(|_| value.split_whitespace().map(str::to_owned).collect());
    }
    let mut expanded = String::with_capacity(word.len());
    let mut rest = word;
    while let Some((before, behind)) = rest.split_once('$') {
        expanded.push_str(before);
        let braced = behind.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        if let Some((name, after)) = braced {
            expanded.push_str(environment.get(name).map(String::as_str).unwrap_or_default());
            rest = after;
        } else {
            expanded.push('$');
            rest = behind.strip_prefix('$').unwrap_or(behind);
        }
    }
    expanded.push_str(rest);
    vec![expanded]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> BTreeMap<String, String> {
        [("ARGS", "--a 'b c'"), ("ONE", "x y"), ("EMPTY", "")].map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    fn expanded(value: &str) -> Vec<String> {
        expand(&parse(value).unwrap()[0].words, &environment())
    }

    #[test]
    fn a_lone_variable_splits_and_a_braced_one_does_not() {
        assert_eq!(expanded("/bin/x $ARGS ${ONE} --y=${ONE}"), ["/bin/x", "--a", "b c", "x y", "--y=x y"]);
    }

    #[test]
    fn an_unset_lone_variable_is_no_word_and_an_unset_braced_one_an_empty_word() {
        assert_eq!(expanded("/bin/x $NONE $EMPTY ${NONE}"), ["/bin/x", ""]);
    }

    #[test]
    fn dollars_are_doubled_and_variables_inside_of_words_need_braces() {
        assert_eq!(expanded("/bin/x $$HOME a$ONE cost=$$5"), ["/bin/x", "$HOME", "a$ONE", "cost=$5"]);
    }

    #[test]
    fn prefixes_combine_in_any_order() {
        let parsed = &parse("-+:@/bin/x name arg").unwrap()[0];
        assert!(parsed.ignore_failure && parsed.privileged && parsed.literal_variables && parsed.named);
        assert_eq!(parsed.words, ["/bin/x", "name", "arg"]);
    }

    #[test]
    fn a_lone_semicolon_separates_commands() {
        let parsed = parse("/bin/a 1 ; -/bin/b \\; 2").unwrap();
        assert_eq!(parsed.len(), 2);
        assert_eq!(parsed[1].words, ["/bin/b", ";", "2"]);
        assert!(parsed[1].ignore_failure && !parsed[0].ignore_failure);
    }

    #[test]
    fn commands_without_a_program_are_refused() {
        assert_eq!(parse("-"), Err(InvalidCommand::NoProgram));
        assert_eq!(parse("/bin/a ;"), Err(InvalidCommand::NoProgram));
    }
}
