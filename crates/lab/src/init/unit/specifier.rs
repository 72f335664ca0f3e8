//! Specifiers in unit files: `%i`, `%n`, `%H` and their like.

use std::fs;

use super::name::UnitName;

/// What specifiers stand for on this machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// `%H`.
    pub hostname: String,
    /// `%m`.
    pub machine_id: String,
    /// `%b`.
    pub boot_id: String,
    /// `%v`.
    pub kernel: String,
}

impl Machine {
    /// Reads them from the running machine.
    pub fn read() -> Self {
        let line = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
        Self {
            hostname: line("/proc/sys/kernel/hostname"),
            machine_id: line("/etc/machine-id"),
            boot_id: line("/proc/sys/kernel/random/boot_id").replace('-', ""),
            kernel: line("/proc/sys/kernel/osrelease"),
        }
    }
}

/// Replaces every specifier; unknown ones stay as they are and are returned as complaints.
pub fn expand(text: &str, unit: &UnitName, machine: &Machine, complaints: &mut Vec<String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            expanded.push(character);
            continue;
        }
        match characters.next() {
            Some('%') | None => expanded.push('%'),
            Some(letter) => {
                if let Some(value) = value_of(letter, unit, machine) {
                    expanded.push_str(&value);
                } else {
                    complaints.push(format!("specifier %{letter} is not known here and stays as it is"));
                    expanded.extend(['%', letter]);
                }
            }
        }
    }
    expanded
}

fn value_of(letter: char, unit: &UnitName, machine: &Machine) -> Option<String> {
    let value = match letter {
        'n' => unit.as_str().to_owned(),
        'N' => unit.stem().to_owned(),
        'p' => unit.prefix().to_owned(),
        'P' => unescape(unit.prefix()),
        'i' => unit.instance().unwrap_or_default().to_owned(),
        'I' => unescape(unit.instance().unwrap_or_default()),
        'j' => unit.prefix().rsplit('-').next().unwrap_or_default().to_owned(),
        'f' => format!("/{}", unescape(unit.instance().filter(|instance| !instance.is_empty()).unwrap_or(unit.prefix()))),
        'H' => machine.hostname.clone(),
        'l' => machine.hostname.split('.').next().unwrap_or_default().to_owned(),
        'm' => machine.machine_id.clone(),
        'b' => machine.boot_id.clone(),
        'v' => machine.kernel.clone(),
        'a' => std::env::consts::ARCH.replace('_', "-"),
        'u' | 'g' => "root".to_owned(),
        'U' | 'G' => "0".to_owned(),
        'h' => "/root".to_owned(),
        's' => "/bin/sh".to_owned(),
        't' => "/run".to_owned(),
        'S' => "/var/lib".to_owned(),
        'C' => "/var/cache".to_owned(),
        'L' => "/var/log".to_owned(),
        'E' => "/etc".to_owned(),
        'T' => "/tmp".to_owned(),
        'V' => "/var/tmp".to_owned(),
        _ => return None,
    };
    Some(value)
}

/// Undoes the escaping of unit names: `-` is a slash, `\x2d` a byte.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        match (first, behind) {
            (b'-', _) => bytes.push(b'/'),
            (b'\\', [b'x', high, low, after @ ..]) => {
                let digits = [*high, *low];
                let value = std::str::from_utf8(&digits).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok());
                match value {
                    Some(value) => {
                        bytes.push(value);
                        rest = after;
                    }
                    None => bytes.push(b'\\'),
                }
            }
            _ => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifiers_speak_of_the_unit_and_the_machine() {
        let machine = Machine { hostname: "m1.lab".into(), machine_id: "id".into(), boot_id: "boot".into(), kernel: "6".into() };
        let unit = UnitName::parse("pull@var-lib\\x2dx.service").unwrap();
        let mut complaints = Vec::new();
        assert_eq!(
            expand("%n %p %i %I %H %l 100%%", &unit, &machine, &mut complaints),
            "pull@var-lib\\x2dx.service pull var-lib\\x2dx var/lib-x m1.lab m1 100%"
        );
        assert!(complaints.is_empty());
        assert_eq!(expand("%q", &unit, &machine, &mut complaints), "%q");
        assert_eq!(complaints.len(), 1);
    }
}
