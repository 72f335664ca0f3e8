//! Time spans of unit files: `90`, `5min 20s`, `500ms`, `infinity`.

use std::time::Duration;

/// A time span, or no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// So long.
    Limited(Duration),
    /// `infinity`.
    Infinite,
}

impl Span {
    /// The limit, if there is one.
    pub fn limit(self) -> Option<Duration> {
        match self {
            Self::Limited(duration) => Some(duration),
            Self::Infinite => None,
        }
    }
}

/// Reads a span; `None` when it is not one.
pub fn parse(text: &str) -> Option<Span> {
    let text = text.trim();
    if text == "infinity" {
        return Some(Span::Infinite);
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at(number_end);
        let behind = behind.trim_start();
        let unit_end = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit_end);
        let seconds = number.parse::<f64>().ok()? * unit_seconds(unit)?;
        total = total.checked_add(Duration::try_from_secs_f64(seconds).ok()?)?;
        rest = behind.trim_start();
    }
    (!text.is_empty()).then_some(Span::Limited(total))
}

fn unit_seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "us" | "usec" => 1e-6,
        "ms" | "msec" => 1e-3,
        "" | "s" | "sec" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 604_800.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_add_up() {
        let limited = |milliseconds| Some(Span::Limited(Duration::from_millis(milliseconds)));
        for (text, expected) in [
            ("90", limited(90_000)),
            ("5min 20s", limited(320_000)),
            ("500ms", limited(500)),
            ("1.5s", limited(1_500)),
            ("0", limited(0)),
            ("1h30m", limited(5_400_000)),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
        assert_eq!(parse("infinity"), Some(Span::Infinite));
    }

    #[test]
    fn nonsense_is_no_span() {
        for text in ["", "soon", "5 apples", "-1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
