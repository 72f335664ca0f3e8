//! What the kernel says of this process: which rights it has, and which signals it was told to ignore.

use std::fs;

/// The right to make namespaces and mounts. Root has it, except in a container that was not given it.
const SYS_ADMIN: u32 = 21;
/// SIGHUP is signal 1, whose bit is the first.
const HANGUP: u32 = 0;

/// Whether this process may make namespaces. Where the kernel does not say, making them will tell.
pub(crate) fn may_make_namespaces() -> bool {
    fs::read_to_string("/proc/self/status").map_or(true, |status| bit(&status, "CapEff", SYS_ADMIN) != Some(false))
}

/// Whether this process was told to ignore that its terminal is gone, as `nohup` does.
pub(crate) fn ignores_hangup() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| bit(&status, "SigIgn", HANGUP) == Some(true))
}

/// A bit of one of the masks in the status of a process.
fn bit(status: &str, mask: &str, number: u32) -> Option<bool> {
    let value = status.lines().find_map(|line| line.strip_prefix(mask)?.strip_prefix(':'))?;
    Some(u64::from_str_radix(value.trim(), 16).ok()? >> number & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_read_from_the_effective_set() {
        let status = |effective: &str| format!("Name:\tsh\nCapPrm:\t000001ffffffffff\nCapEff:\t{effective}\nCapBnd:\t000001ffffffffff\n");
        assert_eq!(bit(&status("000001ffffffffff"), "CapEff", SYS_ADMIN), Some(true));
        assert_eq!(bit(&status("00000000a80425fb"), "CapEff", SYS_ADMIN), Some(false), "what Docker gives");
        assert_eq!(bit(&status("0000000000200000"), "CapEff", SYS_ADMIN), Some(true));
        assert_eq!(bit("Name:\tsh\n", "CapEff", SYS_ADMIN), None);
    }
}
