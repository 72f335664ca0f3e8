//! Who may know whom: the arrows between our crates go one way. Checked by `test`; docs/architecture.md says why.

use std::collections::BTreeSet;

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::command::{cargo, read};

/// What a crate may use. Tests may use more: anything but the programs.
struct Rule {
    name: &'static str,
    /// Crates of ours it may use.
    may_know: &'static [&'static str],
    /// Crates of others that must not be in its tree, however deep.
    never: &'static [&'static str],
}

const RULES: [Rule; 10] = [
    Rule { name: "maas-client", may_know: &[], never: &["kube", "k8s-openapi"] },
    Rule { name: "lxd-client", may_know: &[], never: &["kube", "k8s-openapi"] },
    Rule { name: "api", may_know: &[], never: &[] },
    Rule { name: "decisions", may_know: &["api"], never: &["tokio", "kube-client", "reqwest"] },
    Rule { name: "manager", may_know: &["api", "decisions", "maas-client", "lxd-client"], never: &[] },
    Rule { name: "maas-emulator", may_know: &[], never: &[] },
    Rule { name: "lab", may_know: &[], never: &[] },
    Rule { name: "simulation", may_know: &["api", "decisions", "manager", "maas-client", "lxd-client", "maas-emulator"], never: &[] },
    Rule {
        name: "metalshift",
        may_know: &["api", "decisions", "manager", "maas-client", "lxd-client", "maas-emulator", "lab"],
        never: &[],
    },
    // The chores replay recordings against the emulator and measure it, and write the kinds' manifests and pages.
    Rule { name: "xtask", may_know: &["api", "decisions", "maas-emulator"], never: &[] },
];

/// Nobody uses these, not even in tests.
const PROGRAMS: [&str; 2] = ["metalshift", "xtask"];

#[derive(Debug, Deserialize)]
struct Workspace {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    /// `dev`, `build`, or nothing.
    kind: Option<String>,
}

/// Fails with every arrow that goes the wrong way.
pub fn check() -> anyhow::Result<()> {
    let text = read(&mut cargo(&["metadata", "--no-deps", "--format-version=1"]))?;
    let workspace: Workspace = serde_json::from_str(&text).context("could not read what cargo says of the workspace")?;
    let mut wrong = wrong_arrows(&workspace);
    for rule in RULES.iter().filter(|rule| !rule.never.is_empty() && workspace.packages.iter().any(|package| package.name == rule.name)) {
        let tree = read(&mut cargo(&["tree", "--package", rule.name, "--edges=normal,build", "--prefix=none", "--format={p}"]))?;
        wrong.extend(forbidden_in(rule, &tree));
    }
    if wrong.is_empty() { Ok(()) } else { bail!("dependencies go the wrong way:\n  {}", wrong.join("\n  ")) }
}

fn wrong_arrows(workspace: &Workspace) -> Vec<String> {
    let ours: BTreeSet<&str> = workspace.packages.iter().map(|package| package.name.as_str()).collect();
    let mut wrong = Vec::new();
    for package in &workspace.packages {
        let Some(rule) = RULES.iter().find(|rule| rule.name == package.name) else {
            wrong.push(format!("{} has no rule: say in xtask/src/arrows.rs whom it may know", package.name));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|dependency| ours.contains(dependency.name.as_str())) {
            let name = dependency.name.as_str();
            let in_tests = dependency.kind.as_deref() == Some("dev");
            if PROGRAMS.contains(&name) || !in_tests && !rule.may_know.contains(&name) {
                wrong.push(format!("{} must not know {name}", package.name));
            }
        }
    }
    wrong
}

/// The lines of `tree` begin with the name of a crate.
fn forbidden_in(rule: &Rule, tree: &str) -> Vec<String> {
    let names: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    rule.never
        .iter()
        .filter(|never| names.contains(**never))
        .map(|never| format!("{} must not have {never} in its tree", rule.name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(packages: &serde_json::Value) -> Workspace {
        serde_json::from_value(serde_json::json!({ "packages": packages })).unwrap()
    }

    #[test]
    fn the_arrows_of_this_workspace_go_the_right_way() {
        check().unwrap();
    }

    #[test]
    fn a_planted_violation_is_found() {
        let workspace = workspace(&serde_json::json!([
            {"name": "lab", "dependencies": [{"name": "manager", "kind": null}, {"name": "serde", "kind": null}]},
            {"name": "manager", "dependencies": [{"name": "lab", "kind": "dev"}, {"name": "metalshift", "kind": "dev"}]},
            {"name": "metalshift", "dependencies": [{"name": "manager", "kind": null}]},
        ]));
        assert_eq!(wrong_arrows(&workspace), ["lab must not know manager", "manager must not know metalshift"]);
    }

    #[test]
    fn a_crate_without_a_rule_is_found() {
        let wrong = wrong_arrows(&workspace(&serde_json::json!([{"name": "helpers", "dependencies": []}])));
        assert_eq!(wrong.len(), 1);
        assert!(wrong[0].starts_with("helpers has no rule"), "{wrong:?}");
    }

    #[test]
    fn a_forbidden_crate_is_found_however_deep_and_only_by_its_whole_name() {
        let rule = Rule { name: "decisions", may_know: &[], never: &["tokio"] };
        assert_eq!(
            forbidden_in(&rule, "decisions v0.1.0 (/x)\napi v0.1.0\ntokio v1.54.1\ntokio v1.54.1 (*)"),
            ["decisions must not have tokio in its tree"]
        );
        assert!(forbidden_in(&rule, "decisions v0.1.0\ntokio-macros v2.0.0").is_empty());
    }
}
