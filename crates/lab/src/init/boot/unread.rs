//! Files that a machine with systemd reads and a machine of the lab does not: each is named on the console, so that nothing a user-data
//! writes is passed over in silence. The image hides those of the host.

use std::fs;

use crate::init::layout::Layout;

const DIRECTORIES: [(&str, &str); 6] = [
    ("/etc/init.d", "scripts of System V are not run, only units are"),
    ("/etc/binfmt.d", "the kernel and the formats it runs are the host's"),
    ("/etc/cron.d", "no cron runs on a machine of the lab"),
    ("/etc/network/interfaces.d", "the lab has wired the network of its machines"),
    ("/etc/systemd/network", "the lab has wired the network of its machines"),
    ("/etc/systemd/system.conf.d", "the init of a machine of the lab stands in for systemd and has no settings"),
];

/// A sentence for each file that is there in vain.
pub fn vain(layout: &Layout) -> Vec<String> {
    let mut lines = Vec::new();
    for (directory, why) in DIRECTORIES {
        let entries = fs::read_dir(layout.path(directory)).into_iter().flatten().flatten();
        let names = entries.filter(|entry| entry.metadata().is_ok_and(|file| file.is_file() && file.len() > 0));
        let mut names: Vec<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        lines.extend(names.iter().map(|name| format!("{directory}/{name} has no effect: {why}")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_nobody_reads_is_named_with_the_reason() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::at(root.path());
        for path in ["/etc/cron.d/backup", "/etc/systemd/system.conf.d/10-a.conf", "/etc/rack/own.conf"] {
            fs::create_dir_all(layout.path(path).parent().unwrap()).unwrap();
            fs::write(layout.path(path), "text").unwrap();
        }
        fs::write(layout.path("/etc/cron.d/.placeholder"), "").unwrap();
        let lines = vain(&layout);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("/etc/cron.d/backup has no effect: no cron"), "{lines:?}");
        assert!(lines[1].starts_with("/etc/systemd/system.conf.d/10-a.conf has no effect"), "{lines:?}");
    }
}
