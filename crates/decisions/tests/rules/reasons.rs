//! Every reason that people can read is one that a test has seen, so that none is explained in docs/troubleshooting.md which nobody ever gets.

use std::{collections::BTreeSet, fs, path::Path};

use decisions::{cluster, machine, remediation};

/// Every word that the tests here have in quotes, as what they expect, and those of the tables beside them.
fn words(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            words(&path, found);
        } else if !path.ends_with("go_provider.rs") {
            let text = fs::read_to_string(&path).unwrap();
            let is_table = path.extension().is_some_and(|extension| extension == "txt");
            let quoted = text.lines().flat_map(|line| line.split('"').skip(1).step_by(2)).filter(|_| !is_table);
            let expected = quoted.chain(Some(text.as_str()).filter(|_| is_table));
            found.extend(expected.flat_map(|words| words.split(|letter: char| !letter.is_ascii_alphanumeric())).map(str::to_owned));
        }
    }
}

#[test]
fn every_reason_is_seen_by_a_test() {
    let mut found = BTreeSet::new();
    words(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules"), &mut found);
    let reasons = machine::Reason::ALL.iter().chain(cluster::REASONS).chain(remediation::REASONS);
    let unseen: Vec<&str> = reasons.map(|reason| reason.name).filter(|name| !found.contains(*name)).collect();
    assert_eq!(unseen, Vec::<&str>::new(), "no test under tests/rules expects these: write one, or remove the reason");
}
