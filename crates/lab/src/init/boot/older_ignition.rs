//! Ignition configurations of version 2, which the kubeadm bootstrap provider of Cluster API writes. Debian's ignition reads version 3
//! only, so `ignition` has them put into its words first.

use serde_json::{Map, Value, json};

/// What version 3 has no word for, or what a machine has none of.
const DROPPED: [(&str, &str); 3] = [("storage", "disks"), ("storage", "raid"), ("storage", "filesystems")];

/// Whether it is such a configuration.
pub fn is_version_2(configuration: &Value) -> bool {
    configuration.pointer("/ignition/version").and_then(Value::as_str).is_some_and(|version| version.starts_with("2."))
}

/// The same in version 3; parts that cannot be said there are left out with a sentence each.
pub fn translate(mut configuration: Value) -> (Value, Vec<String>) {
    let mut said = Vec::new();
    configuration["ignition"]["version"] = "3.2.0".into();
    if let Some(Value::Object(config)) = configuration["ignition"].get_mut("config")
        && let Some(append) = config.remove("append")
    {
        config.insert("merge".to_owned(), append);
    }
    for (section, key) in DROPPED {
        if let Some(section) = configuration.get_mut(section).and_then(Value::as_object_mut) {
            section.remove(key);
        }
    }
    let networks = configuration.as_object_mut().and_then(|all| all.remove("networkd"));
    if networks.is_some_and(|networks| entries(&networks, "units") > 0) {
        said.push("ignition networkd.units has no effect on this machine: its network is the lab's".to_owned());
    }
    for kind in ["files", "directories", "links"] {
        let Some(Value::Array(nodes)) = configuration.get_mut("storage").and_then(|storage| storage.get_mut(kind)) else { continue };
        nodes.retain_mut(|node| {
            let file_system = node.as_object_mut().and_then(|node| node.remove("filesystem"));
            let root = file_system.as_ref().and_then(Value::as_str).is_none_or(|name| name == "root");
            if !root {
                said.push(format!("ignition storage.{kind} {} has no effect: its file system is not the root", node["path"]));
            }
            root
        });
        if kind == "files" {
            let files = std::mem::take(nodes);
            *nodes = merge_files(files);
        }
    }
    for unit in objects(&mut configuration, "systemd", "units") {
        if let Some(enable) = unit.remove("enable") {
            unit.entry("enabled").or_insert(enable);
        }
    }
    for user in objects(&mut configuration, "passwd", "users") {
        if let Some(Value::Object(create)) = user.remove("create") {
            for (key, value) in create {
                user.entry(key).or_insert(value);
            }
        }
    }
    (configuration, said)
}

/// Version 2 writes over what is there unless it appends, and may name a path more than once; version 3 has one entry a path.
fn merge_files(files: Vec<Value>) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for mut file in files {
        if file.pointer("/contents/source").and_then(Value::as_str) == Some("") {
            file["contents"] = json!({});
        }
        let append = file.as_object_mut().and_then(|file| file.remove("append")) == Some(Value::Bool(true));
        let before = merged.iter().position(|known| known["path"] == file["path"]);
        match (append, before) {
            (true, Some(index)) => match merged[index].get_mut("append").and_then(Value::as_array_mut) {
                Some(appended) => appended.push(file["contents"].take()),
                None => merged[index]["append"] = json!([file["contents"].take()]),
            },
            (true, None) => {
                let contents = file.as_object_mut().and_then(|file| file.remove("contents"));
                file["append"] = json!([contents]);
                merged.push(file);
            }
            (false, before) => {
                if file["overwrite"].is_null() {
                    file["overwrite"] = true.into();
                }
                if let Some(index) = before {
                    merged.remove(index);
                }
                merged.push(file);
            }
        }
    }
    merged
}

fn objects<'a>(configuration: &'a mut Value, section: &str, key: &str) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    let list = configuration.get_mut(section).and_then(|section| section.get_mut(key)).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

fn entries(section: &Value, key: &str) -> usize {
    section.get(key).and_then(Value::as_array).map_or(0, Vec::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_units_and_users_mean_the_same_in_version_3() {
        let old = json!({
            "ignition": {"version": "2.3.0", "config": {"append": [{"source": "data:,"}]}},
            "networkd": {"units": [{"name": "eth0.network"}]},
            "storage": {
                "disks": [{"device": "/dev/sda"}],
                "files": [
                    {"filesystem": "root", "path": "/a", "mode": 384, "contents": {"source": "data:,1"}},
                    {"filesystem": "root", "path": "/a", "contents": {"source": "data:,2"}, "append": true},
                    {"filesystem": "root", "path": "/empty", "contents": {"source": "", "verification": {}}},
                    {"filesystem": "data", "path": "/b"},
                ],
            },
            "systemd": {"units": [{"name": "kubeadm.service", "enable": true}]},
            "passwd": {"users": [{"name": "ada", "create": {"uid": 1000}}]},
        });
        assert!(is_version_2(&old));
        let (new, said) = translate(old);
        assert!(!is_version_2(&new));
        assert_eq!(
            new,
            json!({
                "ignition": {"version": "3.2.0", "config": {"merge": [{"source": "data:,"}]}},
                "storage": {"files": [
                    {"path": "/a", "mode": 384, "overwrite": true, "contents": {"source": "data:,1"}, "append": [{"source": "data:,2"}]},
                    {"path": "/empty", "overwrite": true, "contents": {}},
                ]},
                "systemd": {"units": [{"name": "kubeadm.service", "enabled": true}]},
                "passwd": {"users": [{"name": "ada", "uid": 1000}]},
            })
        );
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].contains("networkd.units") && said[1].contains("\"/b\""), "{said:?}");
    }
}
