//! How MAAS reaches a VM host: its address, and what the kind of host wants besides. Read from the forms that register and change hosts.
//!
//! The trust password of LXD is in neither: MAAS forgets it when it has served.

use std::collections::BTreeMap;

use super::discover::KINDS;
use crate::endpoints::machines::Problems;
use crate::http::form::Form;
use crate::world::vm_host::VmHost;

/// What a host of a kind is reached by, and what of it cannot be empty.
fn known(kind: &str) -> &'static [(&'static str, Need)] {
    use Need::{Optional, Required};
    match kind {
        "lxd" => &[("power_address", Required), ("project", Required), ("certificate", Optional), ("key", Optional)],
        _ => &[("power_address", Required), ("power_pass", Optional)],
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Required,
    Optional,
}

/// What a new host is reached by.
pub fn of_new(kind: &str, form: &Form) -> BTreeMap<String, String> {
    let given = known(kind).iter().filter_map(|(key, _)| Some(((*key).to_owned(), form.filled(key)?.to_owned())));
    let mut parameters: BTreeMap<String, String> = given.collect();
    if kind == "lxd" {
        parameters.entry("project".to_owned()).or_insert_with(|| "default".into());
        make_certificate(&mut parameters);
    }
    parameters
}

/// What a host is reached by when this form has changed it: what the form does not name stays, and what it names empty is empty.
pub fn changed(host: &VmHost, form: &Form, problems: &mut Problems) -> BTreeMap<String, String> {
    if let Some(kind) = form.get("type").filter(|kind| *kind != host.kind) {
        let words = match kind {
            "" => "This field is required.".to_owned(),
            known if KINDS.contains(&known) => {
                "Cannot change the type of a pod. Delete and re-create the pod with a different type.".to_owned()
            }
            other => format!("Select a valid choice. {other} is not one of the available choices."),
        };
        problems.add("type", words);
    }
    let mut parameters = host.parameters.clone();
    for (key, need) in known(&host.kind) {
        let Some(value) = form.get(key) else { continue };
        if value.is_empty() && *need == Need::Required {
            problems.add(key, "This field is required.");
        }
        parameters.insert((*key).to_owned(), value.to_owned());
    }
    if host.kind == "lxd" {
        make_certificate(&mut parameters);
    }
    parameters
}

/// MAAS makes a certificate where it is given neither that nor a key.
fn make_certificate(parameters: &mut BTreeMap<String, String>) {
    let pair = ["certificate", "key"];
    if pair.iter().all(|key| parameters.get(*key).is_none_or(String::is_empty)) {
        parameters.extend(pair.map(|key| (key.to_owned(), format!("-----BEGIN EMULATED {}-----\n", key.to_ascii_uppercase()))));
    }
}
