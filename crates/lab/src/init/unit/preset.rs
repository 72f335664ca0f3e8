//! Preset files: which units a new machine enables. Ignition writes one; `systemctl preset` and the first boot read them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::condition::glob;
use super::name::UnitName;

/// One line of a preset file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// `enable` or `disable`.
    pub enable: bool,
    /// A name, or a pattern of names.
    pub pattern: String,
    /// Instances of a template that are meant.
    pub instances: Vec<String>,
}

/// Reads the lines of a preset file; those that are no rule are returned as complaints.
pub fn parse(text: &str, complaints: &mut Vec<String>) -> Vec<Rule> {
    let mut rules = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])) {
        let mut words = line.split_whitespace();
        let verb = words.next().unwrap_or_default();
        match (verb, words.next()) {
            ("enable" | "disable", Some(pattern)) => {
                rules.push(Rule { enable: verb == "enable", pattern: pattern.to_owned(), instances: words.map(str::to_owned).collect() });
            }
            _ => complaints.push(format!("preset line {line:?} is not understood")),
        }
    }
    rules
}

/// All rules of some directories, by file name; a file name of an earlier directory hides the later ones.
pub fn read(directories: &[PathBuf], complaints: &mut Vec<String>) -> Vec<Rule> {
    let mut files: BTreeMap<std::ffi::OsString, PathBuf> = BTreeMap::new();
    for directory in directories {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "preset") {
                files.entry(entry.file_name()).or_insert_with(|| entry.path());
            }
        }
    }
    files.values().flat_map(|path| parse(&fs::read_to_string(path).unwrap_or_default(), complaints)).collect()
}

/// What the first rule about a unit says; none says nothing.
pub fn verdict(rules: &[Rule], unit: &UnitName) -> Option<bool> {
    rules
        .iter()
        .find(|rule| {
            let template = unit.template().filter(|_| rule.instances.iter().any(|instance| Some(instance.as_str()) == unit.instance()));
            glob(&rule.pattern, unit.as_str()) || template.is_some_and(|template| glob(&rule.pattern, template.as_str()))
        })
        .map(|rule| rule.enable)
}

/// The units rules name, patterns resolved among the given ones.
pub fn named(rules: &[Rule], present: &[UnitName]) -> Vec<UnitName> {
    let mut units = Vec::new();
    for rule in rules {
        match UnitName::parse(&rule.pattern) {
            Ok(name) if rule.instances.is_empty() => units.push(name),
            Ok(name) => units.extend(rule.instances.iter().map(|instance| name.with_instance(instance))),
            Err(_) => units.extend(present.iter().filter(|name| glob(&rule.pattern, name.as_str())).cloned()),
        }
    }
    units.sort();
    units.dedup();
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> UnitName {
        UnitName::parse(text).unwrap()
    }

    #[test]
    fn the_first_rule_about_a_unit_decides() {
        let mut complaints = Vec::new();
        let rules = parse("# x\nenable kubeadm.service\ndisable k*.service\nenable pull@.service a b\nfrobnicate\n", &mut complaints);
        assert_eq!(verdict(&rules, &name("kubeadm.service")), Some(true));
        assert_eq!(verdict(&rules, &name("kubelet.service")), Some(false));
        assert_eq!(verdict(&rules, &name("pull@b.service")), Some(true));
        assert_eq!(verdict(&rules, &name("pull@c.service")), None);
        assert_eq!(complaints.len(), 1);
    }

    #[test]
    fn patterns_speak_only_of_units_that_are_present() {
        let rules = parse("enable a.service\nenable x-*.service\nenable t@.service 1 2\n", &mut Vec::new());
        let units = named(&rules, &[name("x-1.service"), name("y.service")]);
        assert_eq!(units, ["a.service", "t@1.service", "t@2.service", "x-1.service"].map(name));
    }
}
