//! Amounts as types: MAAS is asked for memory in MiB and for disks in GB. Used by the accessors of a machine's spec.

use std::fmt;

/// 2²⁰ bytes: memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MebiBytes(pub u64);

/// 10⁹ bytes: disks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GigaBytes(pub u64);

impl fmt::Display for MebiBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Display for GigaBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl GigaBytes {
    /// Reads `60`, `60GB`, `60G` (10⁹ bytes), `60Gi`, `60GiB` (2³⁰ bytes, rounded up) and the same with T.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let bytes: u64 = match unit {
            "" | "G" | "GB" => 1_000_000_000,
            "Gi" | "GiB" => 1 << 30,
            "T" | "TB" => 1_000_000_000_000,
            "Ti" | "TiB" => 1 << 40,
            _ => return None,
        };
        let bytes = number.parse::<u64>().ok()?.checked_mul(bytes)?;
        Some(Self(bytes.div_ceil(1_000_000_000)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_disks_are_read_in_every_spelling_and_rounded_up() {
        for (text, gigabytes) in [("60", 60), ("60GB", 60), ("60G", 60), ("60Gi", 65), ("1GiB", 2), ("2TB", 2000), ("1Ti", 1100)] {
            assert_eq!(GigaBytes::from_text(text), Some(GigaBytes(gigabytes)), "{text}");
        }
        for text in ["", "GB", "60MB", "6 0", "-1", "99999999999999999999"] {
            assert_eq!(GigaBytes::from_text(text), None, "{text}");
        }
    }
}
