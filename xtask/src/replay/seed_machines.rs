//! The machines and the rack controller of the seed, from the first list of machines and from what other answers tell about their
//! power. Called by `seed`.

use std::collections::BTreeMap;

use anyhow::ensure;
use serde_json::{Value, json};

use super::{
    recordings::relative,
    script::Invented,
    seed::{Answers, picked},
};

/// What the answers show of machines.
pub struct Machines<'a> {
    recorded: &'a [Value],
    racks: &'a [Value],
    /// Power parameters by system id, of the machines that were asked.
    parameters: BTreeMap<&'a str, &'a Value>,
    /// Addresses of BMCs by system id.
    addresses: BTreeMap<&'a str, &'a str>,
    invented: &'a Invented,
}

impl<'a> Machines<'a> {
    pub fn new(answers: &Answers<'a>, invented: &'a Invented) -> anyhow::Result<Self> {
        let recorded = answers.list("machines/");
        ensure!(!recorded.is_empty(), "the recordings do not show the machines they start with: there is no list of machines among them");
        let mut parameters = BTreeMap::new();
        for (request, body) in answers.operation("power_parameters") {
            match relative(&request.path).trim_end_matches('/').split_once('/') {
                Some((_, system_id)) => drop(parameters.entry(system_id).or_insert(body)),
                None => parameters.extend(body.as_object().into_iter().flatten().map(|(id, body)| (id.as_str(), body))),
            }
        }
        let mut addresses = BTreeMap::new();
        for row in answers.operation("ip_addresses").filter_map(|(_, body)| body.as_array()).flatten() {
            for node in row["bmcs"].as_array().into_iter().flatten().filter_map(|bmc| bmc["nodes"].as_array()).flatten() {
                if let (Some(system_id), Some(address)) = (node["system_id"].as_str(), row["ip"].as_str()) {
                    addresses.entry(system_id).or_insert(address);
                }
            }
        }
        Ok(Self { recorded, racks: answers.list("rackcontrollers/"), parameters, addresses, invented })
    }

    pub fn system_ids(&self) -> Vec<String> {
        self.recorded.iter().filter_map(|machine| machine["system_id"].as_str()).map(str::to_owned).collect()
    }

    pub fn machines(&self) -> Vec<Value> {
        self.recorded.iter().map(|machine| self.machine(machine)).collect()
    }

    pub fn rack(&self) -> Value {
        let Some(rack) = self.racks.first() else { return Value::Null };
        let mut kept = picked(rack, &["system_id", "hostname"]);
        kept["interfaces"] = rows(rack, "interface_set").map(interface).collect();
        kept
    }

    fn machine(&self, machine: &Value) -> Value {
        let mut kept = picked(machine, &["system_id", "hostname", "description", "architecture", "memory", "hardware_info"]);
        kept["cpus"] = machine["cpu_count"].clone();
        kept["zone"] = machine["zone"]["name"].clone();
        kept["pool"] = machine["pool"]["name"].clone();
        kept["domain"] = machine["domain"]["name"].clone();
        kept["tags"] = machine["tag_names"].clone();
        kept["power"] = self.power(machine);
        kept["interfaces"] = rows(machine, "interface_set").map(interface).collect();
        kept["disks"] = rows(machine, "blockdevice_set").map(disk).collect();
        kept["devices"] = json!(self.invented.devices);
        kept
    }

    /// Parameters as recorded, or like those of another machine with the address that is known or an invented one.
    fn power(&self, machine: &Value) -> Value {
        let kind = &machine["power_type"];
        let system_id = machine["system_id"].as_str().unwrap_or_default();
        if kind == "manual" {
            return json!({ "type": kind });
        }
        if let Some(recorded) = self.parameters.get(system_id) {
            return json!({"type": kind, "parameters": recorded});
        }
        let mut parameters = self.parameters.values().next().map_or_else(|| json!({}), |other| (*other).clone());
        if kind != "ipmi"
            && let Some(parameters) = parameters.as_object_mut()
        {
            parameters.remove("power_driver");
        }
        parameters["power_address"] =
            self.addresses.get(system_id).map_or_else(|| format!("{system_id}.bmc").into(), |known| (*known).into());
        json!({"type": kind, "parameters": parameters})
    }
}

fn rows<'a>(object: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    object[key].as_array().into_iter().flatten()
}

fn interface(interface: &Value) -> Value {
    let mut kept = picked(interface, &["id", "name", "tags", "vendor", "product", "firmware_version"]);
    kept["mac"] = interface["mac_address"].clone();
    kept["speed"] = interface["link_speed"].clone();
    if let Some(vlan) = interface["vlan"]["id"].as_u64() {
        kept["vlan"] = vlan.into();
    }
    if let Some(discovered) = rows(interface, "discovered").next() {
        kept["discovered"] = discovered["ip_address"].clone();
    }
    kept["links"] = rows(interface, "links").map(link).collect();
    kept
}

fn link(link: &Value) -> Value {
    let mut kept = picked(link, &["id", "mode"]);
    if let Some(subnet) = link["subnet"]["id"].as_u64() {
        kept["subnet"] = subnet.into();
    }
    if let Some(address) = link["ip_address"].as_str() {
        kept["address"] = address.into();
    }
    kept
}

fn disk(disk: &Value) -> Value {
    let mut kept = picked(disk, &["id", "name", "size", "tags", "model", "serial"]);
    kept["partition_ids"] = rows(disk, "partitions").map(|partition| partition["id"].clone()).collect();
    kept
}
