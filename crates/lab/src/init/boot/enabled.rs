//! Units that user-data enabled for another target than `multi-user.target`. A real machine reaches many targets on its way up; here
//! their services start with it, and whatever cannot run is named, so that nothing a person enabled is passed over in silence.

use std::fs;

use super::{BOOT_TARGET, IMAGE_TARGET};
use crate::init::{layout::Layout, unit::UnitName};

/// Targets a machine reaches on its way up.
const REACHED: [&str; 14] = [
    "sysinit.target",
    "local-fs.target",
    "remote-fs.target",
    "swap.target",
    "basic.target",
    "sockets.target",
    "timers.target",
    "paths.target",
    "network-pre.target",
    "network.target",
    "network-online.target",
    "nss-lookup.target",
    "graphical.target",
    "default.target",
];

/// What was found enabled outside the targets that are started anyway.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Enabled {
    /// To be started.
    pub services: Vec<UnitName>,
    /// A sentence for each that is not.
    pub in_vain: Vec<String>,
}

/// Looks at the links an administrator, cloud-init or ignition made.
pub fn elsewhere(layout: &Layout) -> Enabled {
    let mut links: Vec<(String, String)> = [layout.administrator_units(), layout.runtime_units()]
        .iter()
        .flat_map(|directory| fs::read_dir(directory).into_iter().flatten().flatten())
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let target = name.strip_suffix(".wants").or_else(|| name.strip_suffix(".requires"))?;
            Some((target.to_owned(), entry.path()))
        })
        .filter(|(target, _)| target.ends_with(".target") && target != BOOT_TARGET && target != IMAGE_TARGET)
        .flat_map(|(target, directory)| {
            let units = fs::read_dir(directory).into_iter().flatten().flatten();
            units.filter_map(move |unit| Some((target.clone(), unit.file_name().into_string().ok()?)))
        })
        .collect();
    links.sort();
    let mut enabled = Enabled::default();
    for (target, unit) in links {
        match UnitName::parse(&unit) {
            Ok(name) if name.suffix() == "service" && REACHED.contains(&target.as_str()) => enabled.services.push(name),
            Ok(name) if name.suffix() == "target" && REACHED.contains(&unit.as_str()) => {}
            Ok(name) if name.suffix() == "service" || name.suffix() == "target" => {
                enabled.in_vain.push(format!("{unit} is enabled for {target}, which no machine of the lab reaches: it has no effect"));
            }
            _ => enabled
                .in_vain
                .push(format!("{unit} is enabled for {target}: only services run in a machine of the lab, so it has no effect")),
        }
    }
    enabled
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn services_of_reached_targets_start_and_everything_else_is_named() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::at(root.path());
        for (target, unit) in [
            ("basic.target.wants", "early.service"),
            ("multi-user.target.wants", "usual.service"),
            ("timers.target.wants", "often.timer"),
            ("rescue.target.wants", "never.service"),
        ] {
            let directory = layout.administrator_units().join(target);
            fs::create_dir_all(&directory).unwrap();
            symlink(format!("/etc/systemd/system/{unit}"), directory.join(unit)).unwrap();
        }
        let enabled = elsewhere(&layout);
        assert_eq!(enabled.services, [UnitName::parse("early.service").unwrap()]);
        assert_eq!(enabled.in_vain.len(), 2, "{:?}", enabled.in_vain);
        assert!(enabled.in_vain[0].starts_with("never.service is enabled for rescue.target"), "{:?}", enabled.in_vain);
        assert!(enabled.in_vain[1].starts_with("often.timer is enabled for timers.target"), "{:?}", enabled.in_vain);
    }
}
