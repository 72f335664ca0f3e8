//! Durations as Go programs take them in flags: `15m`, `1h30m`, `1.5s`, `250ms`. Manifests written for the Go provider use them.

use std::time::Duration;

/// Text that is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a duration: write for example 15m, 1h30m or 250ms")]
pub struct InvalidDuration(String);

/// Reads a duration in Go's syntax; negative ones make no sense anywhere here and are refused.
pub fn parse_go_duration(text: &str) -> Result<Duration, InvalidDuration> {
    let invalid = || InvalidDuration(text.to_owned());
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    let mut total = Duration::ZERO;
    loop {
        let number_ends = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').ok_or_else(invalid)?;
        let (number, tail) = rest.split_at(number_ends);
        let unit_ends = tail.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_ends);
        total = total.checked_add(part(number, unit).ok_or_else(invalid)?).ok_or_else(invalid)?;
        if tail.is_empty() {
            return Ok(total);
        }
        rest = tail;
    }
}

fn part(number: &str, unit: &str) -> Option<Duration> {
    let nanoseconds: u64 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut total = whole.checked_mul(nanoseconds)?;
    let mut place = nanoseconds;
    for digit in fraction.chars() {
        place /= 10;
        total = total.checked_add(u64::from(digit.to_digit(10)?) * place)?;
    }
    Some(Duration::from_nanos(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_the_known_manifests_are_read() {
        for (text, seconds) in
            [("120m", 7200.0), ("15m", 900.0), ("1h30m", 5400.0), ("1.5s", 1.5), (".5h", 1800.0), ("250ms", 0.25), ("0", 0.0)]
        {
            assert_eq!(parse_go_duration(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
    }

    #[test]
    fn other_text_is_refused_and_quoted() {
        for text in ["", "15", "m", "-5s", "1d", "1h 30m", "1.2.3s", ".s", "99999999999999h"] {
            let error = parse_go_duration(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}`")), "{error}");
        }
    }
}
