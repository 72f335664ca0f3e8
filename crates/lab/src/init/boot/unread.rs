//! Files that a machine with systemd reads and a machine of the lab does not: each is named on the console, so that nothing a user-data
//! writes is passed over in silence. The image hides those of the host.

use std::{
    fs::{self, FileType},
    path::Path,
};

use super::user_data::NO_SSH;
use crate::init::layout::Layout;

const CRON: &str = "no cron runs on a machine of the lab";
const NETWORK: &str = "the lab has wired the network of its machines";
const DEVICES: &str = "the devices of a machine of the lab are made by the lab";
const KERNEL: &str = "the kernel and what it loads are the host's";
const CLOCK: &str = "the clock is the host's";
const NO_SERVICE: &str = "the init of a machine of the lab stands in for systemd and has no such service";
const NO_SETTINGS: &str = "the init of a machine of the lab stands in for systemd and has no settings";

const LIMITS: &str = "limits are for logins, and nobody logs in on a machine of the lab";
const CORE_DUMPS: &str = "what becomes of core dumps is told to the kernel, which is the host's";

/// Directories, all files of which nobody reads, and single files, with the reason. See [`all`] for the asterisk.
const PLACES: [(&str, &str); 56] = [
    ("/etc/ssh/sshd_config", NO_SSH),
    ("/etc/ssh/sshd_config.d", NO_SSH),
    ("/root/.ssh/authorized_keys", NO_SSH),
    ("/home/*/.ssh/authorized_keys", NO_SSH),
    ("/etc/security/limits.conf", LIMITS),
    ("/etc/security/limits.d", LIMITS),
    ("/etc/apparmor.d", "profiles of AppArmor are loaded into the kernel, which is the host's"),
    ("/etc/systemd/coredump.conf", CORE_DUMPS),
    ("/etc/systemd/coredump.conf.d", CORE_DUMPS),
    ("/etc/systemd/system-generators", "the init of a machine of the lab stands in for systemd and runs no generators"),
    ("/etc/audit/rules.d", "the kernel's audit is the host's"),
    ("/etc/rsyslog.d", "no rsyslog runs on a machine of the lab, `journalctl` has what services say"),
    ("/etc/logrotate.d", CRON),
    ("/etc/init.d", "scripts of System V are not run, only units are"),
    ("/etc/binfmt.d", "the kernel and the formats it runs are the host's"),
    ("/etc/cron.d", CRON),
    ("/etc/cron.hourly", CRON),
    ("/etc/cron.daily", CRON),
    ("/etc/cron.weekly", CRON),
    ("/etc/cron.monthly", CRON),
    ("/etc/crontab", CRON),
    ("/etc/anacrontab", CRON),
    ("/var/spool/cron/crontabs", CRON),
    ("/etc/netplan", NETWORK),
    ("/etc/iptables", NETWORK),
    ("/etc/nftables.conf", NETWORK),
    ("/etc/dhcp/dhclient.conf", NETWORK),
    ("/etc/network/interfaces", NETWORK),
    ("/etc/network/interfaces.d", NETWORK),
    ("/etc/systemd/network", NETWORK),
    ("/etc/systemd/networkd.conf", NETWORK),
    ("/etc/systemd/networkd.conf.d", NETWORK),
    ("/etc/NetworkManager/system-connections", NETWORK),
    ("/etc/NetworkManager/conf.d", NETWORK),
    ("/etc/systemd/resolved.conf", "the resolver of a machine of the lab is the lab's"),
    ("/etc/systemd/resolved.conf.d", "the resolver of a machine of the lab is the lab's"),
    ("/etc/udev/rules.d", DEVICES),
    ("/etc/udev/hwdb.d", DEVICES),
    ("/etc/crypttab", "this machine has no disks but its own"),
    ("/etc/modprobe.d", KERNEL),
    ("/etc/default/grub", KERNEL),
    ("/etc/default/grub.d", KERNEL),
    ("/etc/systemd/timesyncd.conf", CLOCK),
    ("/etc/systemd/timesyncd.conf.d", CLOCK),
    ("/etc/chrony/chrony.conf", CLOCK),
    ("/etc/chrony/conf.d", CLOCK),
    ("/etc/ntp.conf", CLOCK),
    ("/etc/systemd/journald.conf", NO_SERVICE),
    ("/etc/systemd/journald.conf.d", NO_SERVICE),
    ("/etc/systemd/logind.conf", NO_SERVICE),
    ("/etc/systemd/logind.conf.d", NO_SERVICE),
    ("/etc/systemd/sleep.conf", NO_SERVICE),
    ("/etc/systemd/user", "nobody logs in on a machine of the lab, so no units of users run"),
    ("/etc/systemd/user.conf", NO_SETTINGS),
    ("/etc/systemd/system.conf", NO_SETTINGS),
    ("/etc/systemd/system.conf.d", NO_SETTINGS),
];

/// All places below a root, with the reasons; an asterisk stands for every directory that is there.
pub fn all(root: &Path) -> Vec<(String, &'static str)> {
    let mut places = Vec::new();
    for (place, why) in PLACES {
        let Some((above, below)) = place.split_once('*') else {
            places.push((place.to_owned(), why));
            continue;
        };
        let entries = fs::read_dir(root.join(above.trim_start_matches('/'))).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        places.extend(names.into_iter().map(|name| (format!("{above}{name}{below}"), why)));
    }
    places
}

/// A sentence for each file that is there in vain. An empty one asks for nothing.
pub fn vain(layout: &Layout) -> Vec<String> {
    let mut lines = Vec::new();
    for (place, why) in all(&layout.path("/")) {
        let path = layout.path(&place);
        let mut files: Vec<String> = if path.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            let entries = entries.filter(|entry| entry.metadata().is_ok_and(|file| says_something(file.file_type(), file.len())));
            entries.filter_map(|entry| Some(format!("{place}/{}", entry.file_name().into_string().ok()?))).collect()
        } else {
            let found = fs::symlink_metadata(&path).ok().filter(|file| says_something(file.file_type(), file.len()));
            found.map(|_| place.clone()).into_iter().collect()
        };
        files.sort();
        lines.extend(files.iter().map(|file| format!("{file} has no effect: {why}")));
    }
    lines
}

/// A link is an order too: one to /dev/null takes the effect of a file away.
fn says_something(kind: FileType, length: u64) -> bool {
    kind.is_symlink() || (kind.is_file() && length > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_nobody_reads_is_named_with_the_reason() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::at(root.path());
        let read_by_nobody = [
            "/etc/cron.d/backup",
            "/etc/cron.hourly/backup",
            "/etc/crontab",
            "/var/spool/cron/crontabs/root",
            "/etc/netplan/50-cloud-init.yaml",
            "/etc/network/interfaces",
            "/etc/iptables/rules.v4",
            "/etc/dhcp/dhclient.conf",
            "/etc/systemd/user/a.service",
            "/etc/systemd/sleep.conf",
            "/etc/NetworkManager/system-connections/a.nmconnection",
            "/etc/systemd/resolved.conf.d/a.conf",
            "/etc/udev/rules.d/70-a.rules",
            "/etc/modprobe.d/a.conf",
            "/etc/default/grub.d/a.cfg",
            "/etc/systemd/timesyncd.conf",
            "/etc/chrony/chrony.conf",
            "/etc/systemd/journald.conf.d/a.conf",
            "/etc/systemd/system.conf.d/10-a.conf",
            "/etc/ssh/sshd_config.d/10-a.conf",
            "/etc/audit/rules.d/10-a.rules",
            "/etc/rsyslog.d/10-a.conf",
            "/etc/logrotate.d/a",
            "/etc/ssh/sshd_config",
            "/root/.ssh/authorized_keys",
            "/home/ada/.ssh/authorized_keys",
            "/home/bob/.ssh/authorized_keys",
            "/etc/security/limits.conf",
            "/etc/security/limits.d/10-a.conf",
            "/etc/apparmor.d/usr.bin.a",
            "/etc/systemd/coredump.conf",
            "/etc/systemd/coredump.conf.d/a.conf",
            "/etc/systemd/system-generators/a",
        ];
        for path in read_by_nobody.into_iter().chain(["/etc/rack/own.conf", "/home/ada/.ssh/known_hosts"]) {
            fs::create_dir_all(layout.path(path).parent().unwrap()).unwrap();
            fs::write(layout.path(path), "text").unwrap();
        }
        fs::write(layout.path("/etc/cron.d/.placeholder"), "").unwrap();
        fs::write(layout.path("/etc/default/grub"), "").unwrap();
        std::os::unix::fs::symlink("/dev/null", layout.path("/etc/udev/rules.d/80-b.rules")).unwrap();
        let lines = vain(&layout);
        assert_eq!(lines.len(), read_by_nobody.len() + 1, "{lines:#?}");
        for path in read_by_nobody.into_iter().chain(["/etc/udev/rules.d/80-b.rules"]) {
            assert_eq!(lines.iter().filter(|line| line.starts_with(&format!("{path} has no effect: "))).count(), 1, "{path}: {lines:#?}");
        }
        assert!(lines.iter().any(|line| line.starts_with("/etc/cron.d/backup has no effect: no cron")), "{lines:?}");
    }
}
