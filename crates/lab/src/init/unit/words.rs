//! Splitting of values into words with the quoting and escapes of unit files. Used for commands, environments and lists.

/// A value whose quotes do not close.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("unbalanced quotes in {0:?}")]
pub struct UnbalancedQuotes(pub String);

/// Splits at white space outside of quotes; removes quotes; resolves C escapes, keeps unknown ones as they are.
pub fn split(text: &str) -> Result<Vec<String>, UnbalancedQuotes> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, quote) {
            ('\\', _) => word.get_or_insert_default().push_str(&unescape(&mut characters)),
            (_, Some(open)) if character == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (_, None) if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    if quote.is_some() {
        return Err(UnbalancedQuotes(text.to_owned()));
    }
    words.extend(word);
    Ok(words)
}

fn unescape(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let Some(kind) = rest.next() else { return "\\".to_owned() };
    let plain = match kind {
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        's' => ' ',
        '\\' | '"' | '\'' => kind,
        'x' => return numbered(rest, "\\x", 2, 16),
        'u' => return numbered(rest, "\\u", 4, 16),
        '0'..='7' => return octal(kind, rest),
        other => return format!("\\{other}"),
    };
    plain.to_string()
}

fn numbered(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, introduction: &str, length: usize, radix: u32) -> String {
    let mut digits = String::new();
    while digits.len() < length {
        match rest.next_if(|c| c.is_digit(radix)) {
            Some(digit) => digits.push(digit),
            None => break,
        }
    }
    let value = u32::from_str_radix(&digits, radix).ok().filter(|_| digits.len() == length).and_then(char::from_u32);
    value.map_or_else(|| format!("{introduction}{digits}"), String::from)
}

fn octal(first: char, rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let mut digits = first.to_string();
    while digits.len() < 3 {
        match rest.next_if(|c| c.is_digit(8)) {
            Some(digit) => digits.push(digit),
            None => break,
        }
    }
    u32::from_str_radix(&digits, 8).ok().and_then(char::from_u32).map_or_else(|| format!("\\{digits}"), String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_words_together_and_disappear() {
        assert_eq!(split(r#"a "b c" 'd "e"' f"g h"i"#).unwrap(), ["a", "b c", "d \"e\"", "fg hi"]);
        assert_eq!(split(r#"x "" ''"#).unwrap(), ["x", "", ""]);
        assert_eq!(split("  \t ").unwrap(), [""; 0]);
    }

    #[test]
    fn escapes_are_those_of_c_and_unknown_ones_stay() {
        assert_eq!(split(r"a\tb c\x41 \101 d\se \.x \;").unwrap(), ["a\tb", "cA", "A", "d e", "\\.x", "\\;"]);
    }

    #[test]
    fn an_open_quote_is_an_error() {
        assert!(split("echo 'hello").is_err());
    }
}
