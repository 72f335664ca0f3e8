//! What a unit means: the assignments of its files as typed settings, and every directive that has no effect here by name.

use std::path::PathBuf;

use super::condition::{Condition, KNOWN};
use super::load::{LoadState, Source};
use super::name::UnitName;
use super::service::Service;
use super::span::{self, Span};
use super::specifier::{self, Machine};
use super::{file::Assignment, words};

/// Starts allowed within an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartLimit {
    /// No interval or a zero one: no limit.
    pub interval: Span,
    /// So many.
    pub burst: u32,
}

/// The `[Install]` section.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Install {
    /// `WantedBy=`.
    pub wanted_by: Vec<UnitName>,
    /// `RequiredBy=`.
    pub required_by: Vec<UnitName>,
    /// `Also=`.
    pub also: Vec<UnitName>,
    /// `Alias=`.
    pub alias: Vec<UnitName>,
    /// `DefaultInstance=`.
    pub default_instance: Option<String>,
}

/// A unit as the supervisor works with it.
#[derive(Debug, Clone)]
pub struct Definition {
    /// Its own name.
    pub name: UnitName,
    /// Whether there is such a unit.
    pub state: LoadState,
    /// Its file.
    pub fragment: Option<PathBuf>,
    /// Files that changed it.
    pub drop_ins: Vec<PathBuf>,
    /// For people.
    pub description: String,
    /// `After=`.
    pub after: Vec<UnitName>,
    /// `Before=`.
    pub before: Vec<UnitName>,
    /// `Requires=` and `.requires`, also `BindsTo=`.
    pub requires: Vec<UnitName>,
    /// `Requisite=`.
    pub requisite: Vec<UnitName>,
    /// `Wants=` and `.wants`, also `Upholds=` at start.
    pub wants: Vec<UnitName>,
    /// `PartOf=`: stopped and restarted with these. `BindsTo=` and `Requires=` units are, too.
    pub part_of: Vec<UnitName>,
    /// `Conflicts=`.
    pub conflicts: Vec<UnitName>,
    /// `OnFailure=`.
    pub on_failure: Vec<UnitName>,
    /// `Condition…=`.
    pub conditions: Vec<Condition>,
    /// `Assert…=`.
    pub asserts: Vec<Condition>,
    /// Starts allowed.
    pub start_limit: StartLimit,
    /// The `[Service]` section of a service.
    pub service: Service,
    /// The `[Install]` section.
    pub install: Install,
    /// One sentence for each thing that has no effect here.
    pub notes: Vec<String>,
}

/// Directives whose absence of effect nobody could notice.
const MEANINGLESS: [&str; 11] = [
    "Description",
    "Documentation",
    "SourcePath",
    "DefaultDependencies",
    "IgnoreOnIsolate",
    "RefuseManualStart",
    "RefuseManualStop",
    "AllowIsolate",
    "CollectMode",
    "JobRunningTimeoutSec",
    "WantsMountsFor",
];

/// Gives the assignments of a source their meaning.
pub fn define(source: Source, machine: &Machine) -> Definition {
    let mut definition = Definition {
        name: source.name,
        state: source.state,
        fragment: source.fragment,
        drop_ins: source.drop_ins,
        description: String::new(),
        after: Vec::new(),
        before: Vec::new(),
        requires: source.requires,
        requisite: Vec::new(),
        wants: source.wants,
        part_of: Vec::new(),
        conflicts: Vec::new(),
        on_failure: Vec::new(),
        conditions: Vec::new(),
        asserts: Vec::new(),
        start_limit: StartLimit { interval: Span::Limited(std::time::Duration::from_secs(10)), burst: 5 },
        service: Service::default(),
        install: Install::default(),
        notes: source.complaints,
    };
    for assignment in &source.assignments {
        apply(&mut definition, assignment, machine);
    }
    definition.service.settle(&mut definition.notes);
    definition
}

fn apply(definition: &mut Definition, assignment: &Assignment, machine: &Machine) {
    let Assignment { section, key, value } = assignment;
    let known = match section.as_str() {
        "Unit" => apply_unit(definition, key, value, machine),
        "Service" if key.starts_with("StartLimit") => apply_limit(&mut definition.start_limit, key, value),
        "Service" => definition.service.apply(key, value, &definition.name, machine, &mut definition.notes),
        "Install" => apply_install(definition, key, value, machine),
        // Sections of other kinds of units; the unit as a whole is named where it would start.
        _ => {
            section.starts_with("X-") || matches!(section.as_str(), "Timer" | "Socket" | "Mount" | "Path" | "Swap" | "Slice" | "Automount")
        }
    };
    if !known && !key.starts_with("X-") {
        definition.notes.push(format!("{key}={value} in [{section}] has no effect here"));
    }
}

fn apply_unit(definition: &mut Definition, key: &str, value: &str, machine: &Machine) -> bool {
    let nearest = [("BindsTo", "Requires"), ("Upholds", "Wants")].into_iter().find(|(name, _)| *name == key && !value.is_empty());
    if let Some((name, nearest)) = nearest {
        definition.notes.push(format!("{name}={value} in [Unit] counts as {nearest}= here"));
    }
    let test = |prefix| key.strip_prefix(prefix).filter(|test| KNOWN.contains(test));
    let list = match key {
        "After" => &mut definition.after,
        "Before" => &mut definition.before,
        "Requires" | "BindsTo" => &mut definition.requires,
        "Requisite" => &mut definition.requisite,
        "Wants" | "Upholds" => &mut definition.wants,
        "PartOf" => &mut definition.part_of,
        "Conflicts" => &mut definition.conflicts,
        "OnFailure" => &mut definition.on_failure,
        "Description" => {
            value.clone_into(&mut definition.description);
            return true;
        }
        _ if key.starts_with("StartLimit") => return apply_limit(&mut definition.start_limit, key, value),
        _ => {
            let (list, test) = match (test("Condition"), test("Assert")) {
                (Some(test), _) => (&mut definition.conditions, test),
                (_, Some(test)) => (&mut definition.asserts, test),
                _ => return MEANINGLESS.contains(&key),
            };
            if value.is_empty() {
                list.clear();
            } else {
                let value = specifier::expand(value, &definition.name, machine, &mut definition.notes);
                list.push(Condition::parse(test, &value));
            }
            return true;
        }
    };
    append_names(list, value, &definition.name, machine, &mut definition.notes);
    true
}

fn apply_limit(limit: &mut StartLimit, key: &str, value: &str) -> bool {
    match key {
        "StartLimitBurst" => value.parse().map(|burst| limit.burst = burst).is_ok(),
        "StartLimitInterval" | "StartLimitIntervalSec" => span::parse(value).map(|interval| limit.interval = interval).is_some(),
        _ => false,
    }
}

fn apply_install(definition: &mut Definition, key: &str, value: &str, machine: &Machine) -> bool {
    let list = match key {
        "WantedBy" => &mut definition.install.wanted_by,
        "RequiredBy" => &mut definition.install.required_by,
        "Also" => &mut definition.install.also,
        "Alias" => &mut definition.install.alias,
        "DefaultInstance" => {
            definition.install.default_instance = Some(value.to_owned()).filter(|value| !value.is_empty());
            return true;
        }
        _ => return false,
    };
    append_names(list, value, &definition.name, machine, &mut definition.notes);
    true
}

/// Adds names to a list; an empty value empties it.
fn append_names(list: &mut Vec<UnitName>, value: &str, unit: &UnitName, machine: &Machine, notes: &mut Vec<String>) {
    if value.is_empty() {
        list.clear();
        return;
    }
    for word in words::split(value).unwrap_or_default() {
        match UnitName::parse(&specifier::expand(&word, unit, machine, notes)) {
            Ok(name) if !list.contains(&name) => list.push(name),
            Ok(_) => {}
            Err(error) => notes.push(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init::unit::file;

    fn defined(name: &str, text: &str) -> Definition {
        let machine = Machine { hostname: "m1".into(), machine_id: String::new(), boot_id: String::new(), kernel: String::new() };
        let parsed = file::parse(text);
        let source = Source {
            name: UnitName::parse(name).unwrap(),
            state: LoadState::Loaded,
            fragment: None,
            drop_ins: Vec::new(),
            assignments: parsed.assignments,
            complaints: parsed.complaints,
            wants: Vec::new(),
            requires: Vec::new(),
        };
        define(source, &machine)
    }

    fn names(list: &[UnitName]) -> Vec<&str> {
        list.iter().map(UnitName::as_str).collect()
    }

    #[test]
    fn an_empty_assignment_empties_a_list() {
        let unit = defined(
            "a.service",
            "[Unit]\nAfter=x.service y.target\nAfter=\nAfter=z.service\n[Service]\nExecStart=/bin/a\nExecStart=\nExecStart=/bin/b\n",
        );
        assert_eq!(names(&unit.after), ["z.service"]);
        assert_eq!(unit.service.exec_start.len(), 1);
        assert_eq!(unit.service.exec_start[0].words, ["/bin/b"]);
    }

    #[test]
    fn directives_without_effect_are_named_and_harmless_ones_are_not() {
        let unit = defined(
            "a.service",
            "[Unit]\nDescription=x\nDocumentation=man:x\nFailureAction=reboot\n[Service]\nExecStart=/bin/a\nProtectSystem=strict\nX-Own=1\n",
        );
        let named = ["RequiresMountsFor", "JobTimeoutSec", "StopWhenUnneeded"].map(|key| ("Unit", key));
        for (section, key) in named.into_iter().chain(["TasksMax", "Slice", "Delegate", "TTYPath"].map(|key| ("Service", key))) {
            let notes = defined("a.service", &format!("[Service]\nExecStart=/bin/a\n[{section}]\n{key}=x\n")).notes;
            assert_eq!(notes, [format!("{key}=x in [{section}] has no effect here")]);
        }
        assert_eq!(
            unit.notes,
            ["FailureAction=reboot in [Unit] has no effect here", "ProtectSystem=strict in [Service] has no effect here"]
        );
    }

    #[test]
    fn names_in_lists_may_hold_specifiers() {
        let unit = defined("a@b.service", "[Unit]\nAfter=%p-%i.service\n[Install]\nWantedBy=multi-user.target\n");
        assert_eq!(names(&unit.after), ["a-b.service"]);
        assert_eq!(names(&unit.install.wanted_by), ["multi-user.target"]);
    }

    #[test]
    fn the_start_limit_is_read_from_both_sections() {
        assert_eq!(
            defined("a.service", "[Service]\nExecStart=/bin/a\nStartLimitInterval=0\n").start_limit.interval,
            Span::Limited(std::time::Duration::ZERO)
        );
        assert_eq!(defined("a.service", "[Unit]\nStartLimitBurst=2\n[Service]\nExecStart=/bin/a\n").start_limit.burst, 2);
    }

    #[test]
    fn a_service_without_a_command_says_so() {
        assert!(defined("a.service", "[Service]\nType=simple\n").service.refusal.is_some());
        assert!(defined("a.service", "[Service]\nExecStart=/bin/a\nExecStart=/bin/b\n").service.refusal.is_some());
        assert!(defined("a.service", "[Service]\nType=oneshot\nExecStart=/bin/a\nExecStart=/bin/b\n").service.refusal.is_none());
    }
}
