//! Every verdict in every state of MAAS for every intention, with what is done and what is shown, as one table that a person can read:
//! `table.txt`. A change of a rule is a change of that file. `UPDATE_TABLE=1` writes it.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use decisions::{
    Lookup, Server, ServerStatus,
    machine::{Facts, Plan, decide},
};

use super::{
    facts::{deleting, giving_back, holding, now, provisioned, server, wanted},
    taken_over::{another_providers, ran_before},
};

/// What an object is meant for, and how that shows in its facts.
type Intention = (&'static str, fn(Facts) -> Facts);
type Change = (&'static str, fn(&mut Server));

const HOLDERS: [Change; 4] = [
    ("ours", |_| ()),
    ("unmarked", |server| server.marks.clear()),
    ("foreign", |server| server.marks = BTreeMap::from([("metalshift-claim".to_owned(), "ms-other".to_owned())])),
    ("nobody's", |server| {
        server.owner = None;
        server.marks.clear();
    }),
];

fn composed(mut facts: Facts) -> Facts {
    facts.object.spec.provisioning_mode = Some(api::ProvisioningMode::Lxd);
    let named = facts.recorded.iter_mut().filter_map(|lookup| if let Lookup::Found(server) = lookup { Some(server) } else { None });
    let claimed = if let Lookup::Found(claimed) = &mut facts.claimed { claimed.iter_mut() } else { [].iter_mut() };
    for server in named.chain(claimed) {
        server.vm_host = Some("host-1".to_owned());
    }
    facts
}

fn line(plan: &Plan) -> String {
    let step = plan.step.as_ref().map_or_else(|| "-".to_owned(), |step| format!("{:?}", step.name()));
    let conditions = plan.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let reason = api::condition::find(conditions, "MachineDeployed").map(|condition| condition.reason.clone()).unwrap_or_default();
    format!("{step:<16} {reason}")
}

fn table() -> String {
    let mut text = String::from("intention  server     step             reason                     states in MAAS\n");
    let intentions: [Intention; 10] = [
        ("create", |facts| facts),
        ("keep", provisioned),
        ("delete", deleting),
        ("give back", giving_back),
        // Of another provider, which handed it over: it never ran, it ran, it is deleted.
        ("adopt", another_providers),
        ("adopt, ran", |facts| ran_before(another_providers(facts))),
        ("and delete", |facts| deleting(ran_before(another_providers(facts)))),
        // A virtual machine that was composed for the object, which nobody here can make or remove yet.
        ("compose", composed),
        ("keep VM", |facts| provisioned(composed(facts))),
        ("delete VM", |facts| deleting(composed(facts))),
    ];
    for (intention, shape) in intentions {
        for (holder, change) in HOLDERS {
            let mut outcomes: Vec<(String, Vec<String>)> = Vec::new();
            for status in ServerStatus::all().chain([ServerStatus::Other(99)]) {
                let mut server = server(status);
                change(&mut server);
                let facts = shape(holding(wanted(), Lookup::Found(server)));
                let outcome = line(&decide(&facts, now()));
                match outcomes.iter_mut().find(|(other, _)| *other == outcome) {
                    Some((_, states)) => states.push(status.to_string()),
                    None => outcomes.push((outcome, vec![status.to_string()])),
                }
            }
            for (outcome, states) in &outcomes {
                let states = if outcomes.len() == 1 { "any".to_owned() } else { states.join(", ") };
                writeln!(text, "{intention:<10} {holder:<10} {outcome:<43} {states}").unwrap();
            }
        }
        for (name, lookup) in [("deleted", Lookup::Missing), ("hidden", Lookup::Forbidden)] {
            let plan = decide(&shape(holding(wanted(), lookup)), now());
            writeln!(text, "{intention:<10} {name:<10} {}", line(&plan)).unwrap();
        }
    }
    text.lines().map(str::trim_end).fold(String::new(), |all, line| all + line + "\n")
}

#[test]
fn every_verdict_in_every_state_for_every_intention_is_as_written_down() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules/machine/table.txt");
    let text = table();
    if std::env::var_os("UPDATE_TABLE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == written, "the rules differ from {}; look at it with UPDATE_TABLE=1 and `git diff`", path.display());
}
