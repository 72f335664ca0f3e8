//! What user-data is, told by its content, and what a person must know that it asks for in vain.

use serde_json::Value;

/// The kinds of user-data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Nothing.
    Empty,
    /// An Ignition configuration.
    Ignition,
    /// Everything cloud-init reads: cloud-config, scripts, MIME parts, templates, compressed data.
    CloudInit,
}

/// Tells the kind by the content alone.
pub fn format(bytes: &[u8]) -> Format {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Format::Empty;
    }
    let ignition = serde_json::from_slice::<Value>(bytes).is_ok_and(|value| value.get("ignition").is_some_and(Value::is_object));
    if ignition { Format::Ignition } else { Format::CloudInit }
}

/// Why nobody logs in over the network; also for files and for Ignition.
pub const NO_SSH: &str = "no SSH server runs on a machine of the lab, `metalshift lab exec --machine` goes there";

/// Keys of a cloud-config whose modules run on this machine, or that only steer cloud-init itself.
const WORKING_KEYS: [&str; 44] = [
    "allow_public_ssh_keys",
    "bootcmd",
    "ca-certs",
    "ca_certs",
    "chpasswd",
    "cloud_config_modules",
    "cloud_final_modules",
    "cloud_init_modules",
    "create_hostname_file",
    "datasource",
    "datasource_list",
    "disable_root",
    "disable_root_opts",
    "final_message",
    "fqdn",
    "groups",
    "hostname",
    "manage_etc_hosts",
    "merge_how",
    "merge_type",
    "no_ssh_fingerprints",
    "output",
    "password",
    "phone_home",
    "power_state",
    "prefer_fqdn_over_hostname",
    "preserve_hostname",
    "random_seed",
    "reporting",
    "runcmd",
    "ssh",
    "ssh_authorized_keys",
    "ssh_deletekeys",
    "ssh_genkeytypes",
    "ssh_keys",
    "ssh_pwauth",
    "ssh_quiet_keygen",
    "system_info",
    "timezone",
    "user",
    "users",
    "vendor_data",
    "write_files",
    "vendor_data2",
];

/// Of these keys those that ask for something, with the reason why it is in vain.
fn asked_for<'a>(settings: &'a Value, keys: &'a [&str]) -> impl Iterator<Item = (&'a str, &'static str)> {
    let says_something =
        |value: &Value| !matches!(value, Value::Null | Value::Bool(false)) && value.as_array().is_none_or(|list| !list.is_empty());
    keys.iter().filter(move |key| settings.get(**key).is_some_and(says_something)).map(|key| match *key {
        "ssh_import_id" => (*key, "there is no way out to fetch keys"),
        _ => (*key, NO_SSH),
    })
}

/// One sentence for each key of a cloud-config that has no effect here.
pub fn vain_cloud_config(text: &str) -> Vec<String> {
    let config = match serde_saphyr::from_str::<Value>(text) {
        Ok(config @ Value::Object(_)) => config,
        Ok(Value::Null) => return Vec::new(),
        Ok(_) => return vec!["the cloud-config is no mapping of keys: it has no effect on this machine".to_owned()],
        Err(error) => {
            let reason = error.to_string();
            let reason = reason.lines().next().unwrap_or_default();
            return vec![format!("the cloud-config could not be read to tell what of it has no effect on this machine: {reason}")];
        }
    };
    let vain = config.as_object().into_iter().flat_map(|config| config.keys()).filter(|key| !WORKING_KEYS.contains(&key.as_str()));
    let vain = vain.map(|key| format!("cloud-config key {key} has no effect on this machine: its module is switched off or unknown"));
    let users = config.get("users").and_then(Value::as_array).into_iter().flatten().chain(config.get("user"));
    let of_users = users.flat_map(|user| {
        let name = user.get("name").and_then(Value::as_str).unwrap_or("default");
        asked_for(user, &["ssh_import_id", "ssh_authorized_keys", "ssh-authorized-keys"])
            .map(move |(key, why)| format!("cloud-config {key} of user {name} has no effect on this machine: {why}"))
    });
    let of_all = asked_for(&config, &["ssh_authorized_keys", "ssh_keys", "ssh_pwauth"]);
    let of_all = of_all.map(|(key, why)| format!("cloud-config {key} has no effect on this machine: {why}"));
    vain.chain(of_all).chain(of_users).collect()
}

/// One sentence for each part of an Ignition configuration that has no effect here.
pub fn vain_ignition(configuration: &Value) -> Vec<String> {
    let parts = [
        ("/storage/disks", "storage.disks", "the machine has no disks to partition"),
        ("/storage/raid", "storage.raid", "the machine has no disks to join"),
        ("/storage/filesystems", "storage.filesystems", "nothing is formatted or mounted; files go to the root file system"),
        ("/storage/luks", "storage.luks", "nothing is encrypted"),
        ("/kernelArguments/shouldExist", "kernelArguments.shouldExist", "the machine has no kernel of its own"),
        ("/kernelArguments/shouldNotExist", "kernelArguments.shouldNotExist", "the machine has no kernel of its own"),
    ];
    let asked = |pointer| configuration.pointer(pointer).and_then(Value::as_array).map_or(0, Vec::len);
    let users = configuration.pointer("/passwd/users").and_then(Value::as_array).into_iter().flatten();
    let with_keys = users.filter(|user| asked_for(user, &["sshAuthorizedKeys"]).next().is_some());
    let keys = with_keys.map(|user| {
        let name = user.get("name").and_then(Value::as_str).unwrap_or_default();
        format!("ignition ssh keys of user {name} have no effect on this machine: {NO_SSH}")
    });
    parts
        .into_iter()
        .filter(|(pointer, ..)| asked(pointer) > 0)
        .map(|(pointer, name, why)| format!("ignition {name} ({} entries) has no effect on this machine: {why}", asked(pointer)))
        .chain(keys)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_told_by_the_content() {
        for (text, expected) in [
            ("", Format::Empty),
            (" \n\t", Format::Empty),
            (" {\"ignition\": {\"version\": \"3.2.0\"}}", Format::Ignition),
            ("{\"ignition\": 1}", Format::CloudInit),
            ("#cloud-config\nruncmd: []\n", Format::CloudInit),
            ("## template: jinja\n#cloud-config\n", Format::CloudInit),
            ("#!/bin/sh\n", Format::CloudInit),
            ("{\"ignition\": {", Format::CloudInit),
        ] {
            assert_eq!(format(text.as_bytes()), expected, "{text:?}");
        }
        assert_eq!(format(&[0x1f, 0x8b, 8, 0]), Format::CloudInit);
    }

    #[test]
    fn keys_whose_modules_are_off_are_named() {
        let vain = vain_cloud_config("#cloud-config\nruncmd:\n- ls\ndisk_setup:\n  /dev/sdb: {}\nntp: {enabled: true}\nwrite_files: []\n");
        assert_eq!(vain.len(), 2);
        assert!(vain[0].contains("disk_setup") && vain[1].contains("ntp"), "{vain:?}");
        assert!(vain_cloud_config("#cloud-config\n").is_empty());
    }

    #[test]
    fn keys_of_a_user_that_would_be_fetched_and_what_cannot_be_read_are_named() {
        let vain =
            vain_cloud_config("users:\n- default\n- name: ada\n  ssh_import_id: [\"gh:ada\"]\n- name: bob\n  ssh_authorized_keys: []\n");
        assert_eq!(vain.len(), 1, "{vain:?}");
        assert!(vain[0].contains("ssh_import_id of user ada"), "{vain:?}");
        let unreadable = vain_cloud_config("not: [closed");
        assert!(unreadable.len() == 1 && unreadable[0].contains("could not be read"), "{unreadable:?}");
    }

    #[test]
    fn ways_in_by_ssh_are_named_one_by_one() {
        let vain = vain_cloud_config(
            "ssh_pwauth: true\nssh_authorized_keys: [ssh-ed25519 AAA]\nusers:\n- name: ada\n  ssh_authorized_keys: [ssh-ed25519 AAA]\n",
        );
        let begin: Vec<&str> = vain.iter().filter_map(|line| line.split(" has no effect").next()).collect();
        let expected = ["cloud-config ssh_authorized_keys", "cloud-config ssh_pwauth", "cloud-config ssh_authorized_keys of user ada"];
        assert_eq!(begin, expected, "{vain:?}");
        assert!(vain.iter().all(|line| line.contains("metalshift lab exec")), "{vain:?}");
        assert!(vain_cloud_config("ssh_pwauth: false\n").is_empty(), "nobody asked for a way in");
        let ignition =
            serde_json::json!({"passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAA"]}, {"name": "ada"}]}});
        let vain = vain_ignition(&ignition);
        assert!(vain.len() == 1 && vain[0].contains("ssh keys of user core"), "{vain:?}");
    }

    #[test]
    fn disks_and_kernel_arguments_of_ignition_are_named_when_asked_for() {
        let configuration = serde_json::json!({"storage": {"disks": [{"device": "/dev/sda"}], "files": [{}], "raid": []}, "kernelArguments": {"shouldExist": ["quiet"]}});
        let vain = vain_ignition(&configuration);
        assert_eq!(vain.len(), 2);
        assert!(vain[0].contains("storage.disks (1 entries)") && vain[1].contains("kernelArguments.shouldExist"));
    }
}
