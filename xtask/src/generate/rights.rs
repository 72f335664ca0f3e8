//! The page of what the provider's account may do, from the rules that are installed: each with its reason. Used by `provider`.

use std::fmt::Write as _;

use anyhow::{Context as _, ensure};

use super::Page;

/// Where rules count, and the rules as they are written.
type Place<'a> = (&'a str, &'a str);

/// A rule, with the remark above it, or above the rule before it if it has none.
#[derive(Debug, Default, Clone, PartialEq)]
struct Rule {
    reason: String,
    resources: String,
    names: Option<String>,
    verbs: String,
}

/// The path and the text of the page.
pub fn page(places: &[Place<'_>]) -> anyhow::Result<Page> {
    let mut page = "<!-- Written by `cargo xtask generate` from the rules that are installed; changes made here are lost. -->\n\n\
                    # Rights\n\n\
                    What the provider's account may do in the management cluster. A test looks at every call of the account in the API server's own record and\n\
                    fails for one that was forbidden.\n"
        .to_owned();
    for (place, text) in places {
        write!(page, "\n## {place}\n\n| what | may | why |\n|---|---|---|\n")?;
        for rule in rules(text)? {
            let names = rule.names.map(|names| format!(" named {}", code(&names))).unwrap_or_default();
            writeln!(page, "| {}{names} | {} | {} |", code(&rule.resources), rule.verbs, rule.reason)?;
        }
    }
    page.push_str(
        "\n## In workload clusters\n\nWith the kubeconfig that Cluster API keeps of them, which may do everything, this is written and nothing else:\n\n\
         | what | why |\n|---|---|\n\
         | `spec.providerID` of a node that has none | Cluster API finds the node of a machine by it |\n\
         | the node of a server that goes back to MAAS before it was handed over: it is deleted | Cluster API knows nothing of it and would leave it |\n\
         | the label `cluster-api-maas/api-server-ready` of the namespace `kube-system` | the Go provider's, for programs that wait for it |\n",
    );
    Ok(("docs/reference/rights.md".to_owned(), page))
}

/// The rules of a text in the one form they are written in here.
fn rules(text: &str) -> anyhow::Result<Vec<Rule>> {
    let mut rules: Vec<Rule> = Vec::new();
    let mut remark = Vec::new();
    for line in text.lines() {
        if let Some(words) = line.strip_prefix("# ") {
            remark.push(words);
        } else if line.starts_with("- apiGroups: ") {
            let reason = if remark.is_empty() { rules.last().map(|rule| rule.reason.clone()) } else { Some(remark.join(" ")) };
            remark.clear();
            rules.push(Rule { reason: reason.context("the first rule has no reason above it")?, ..Rule::default() });
        } else {
            let (key, list) = line.trim().split_once(": [").with_context(|| format!("not a part of a rule: {line}"))?;
            let list = list.strip_suffix(']').with_context(|| format!("a list that goes on: {line}"))?.to_owned();
            let rule = rules.last_mut().with_context(|| format!("not in a rule: {line}"))?;
            match key {
                "resources" => rule.resources = list,
                "resourceNames" => rule.names = Some(list),
                "verbs" => rule.verbs = list,
                _ => anyhow::bail!("unknown part of a rule: {line}"),
            }
        }
    }
    ensure!(rules.iter().all(|rule| !rule.resources.is_empty() && !rule.verbs.is_empty()), "a rule is not whole");
    Ok(rules)
}

fn code(list: &str) -> String {
    list.split(", ").map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_has_the_reason_above_it_or_that_of_the_rule_before() {
        let text = "# One.\n# Two.\n- apiGroups: [\"\"]\n  resources: [a, b/status]\n  verbs: [get]\n- apiGroups: [x]\n  resources: [c]\n  resourceNames: [d]\n  verbs: [get, patch]\n";
        let rule = |resources: &str, names: Option<&str>, verbs: &str| Rule {
            reason: "One. Two.".to_owned(),
            resources: resources.to_owned(),
            names: names.map(str::to_owned),
            verbs: verbs.to_owned(),
        };
        assert_eq!(rules(text).unwrap(), [rule("a, b/status", None, "get"), rule("c", Some("d"), "get, patch")]);
    }

    #[test]
    fn of_config_maps_the_one_that_is_read_may_be_read_and_secrets_may_never_be_listed() {
        let rules = rules(include_str!("provider/rules.yaml")).unwrap();
        let of = |resource: &str| rules.iter().filter(|rule| rule.resources == resource).collect::<Vec<_>>();
        let [maps] = of("configmaps")[..] else { panic!("{rules:?}") };
        assert_eq!((maps.names.as_deref(), maps.verbs.as_str()), (Some(api::names::PREFERRED_SUBNETS), "get"));
        let [secrets] = of("secrets")[..] else { panic!("{rules:?}") };
        assert_eq!(secrets.verbs, "get");
    }

    #[test]
    fn what_is_no_rule_is_not_left_out_of_the_page_in_silence() {
        for text in
            ["  verbs: [get]", "- apiGroups: [x]", "# Why.\n- apiGroups: [x]\n  verbs: [get]", "# Why.\n- apiGroups: [x]\n  resources:\n"]
        {
            assert!(rules(text).is_err(), "{text}");
        }
    }
}
