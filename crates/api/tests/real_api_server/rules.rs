//! How a rule is tried: an object that breaks it is refused with the words that say what to do, and one beside it is taken.

use crate::{rules_about_changes, rules_of_clusters, rules_of_machines, rules_of_remediations, schema, server::Server};
use api::definitions;
use serde_json::Value;
use std::collections::BTreeSet;

/// One rule.
pub struct Case {
    pub kind: &'static str,
    /// Where the refusal points to; `[]` for any item of a list.
    pub path: &'static str,
    /// What it says.
    pub message: &'static str,
    /// The object before, if the rule is about changes.
    pub before: Option<Value>,
    pub refused: Value,
    pub taken: Value,
}

/// Tries every rule and tells of all that do not hold.
pub async fn try_all(server: &Server, cases: Vec<Case>) {
    let mut wrong = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let name = format!("case-{number}");
        if let Some(before) = &case.before {
            server.create(case.kind, &name, before, false).await.unwrap();
        }
        let attempt = async |spec: &Value| match case.before {
            None => server.create(case.kind, &name, spec, true).await,
            Some(_) => server.change(case.kind, &name, &serde_json::json!({"spec": spec}), true).await,
        };
        let words = format!("{}: {}", case.path, case.message);
        match attempt(&case.refused).await {
            Ok(_) => wrong.push(format!("{words}\n  was not said of {}", case.refused)),
            Err(said) if said.contains(&format!("{}: Invalid value", case.path.replace("[]", "[0]"))) && said.contains(case.message) => {}
            Err(said) => wrong.push(format!("{words}\n  was not said, but {said}")),
        }
        if let Err(said) = attempt(&case.taken).await {
            wrong.push(format!("{words}\n  {} was refused: {said}", case.taken));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_of_every_kind_is_tried() {
    let cases = rules_of_machines::cases().into_iter().chain(rules_of_clusters::cases()).chain(rules_of_remediations::cases());
    let cases = cases.chain(rules_about_changes::cases());
    let tried: BTreeSet<(String, String)> = cases.map(|case| (case.path.to_owned(), case.message.to_owned())).collect();
    let mut there = BTreeSet::new();
    for definition in definitions() {
        // A template's rules are those of what it makes.
        there.extend(schema::rules(&definition).into_iter().map(|(path, message)| (path.replace("spec.template.spec", "spec"), message)));
    }
    assert_eq!(tried, there);
}
