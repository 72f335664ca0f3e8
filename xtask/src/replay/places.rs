//! Which places of an answer hold values that MAAS made up, and what those values name: by the key, the object around it and the
//! path. Everything that is not named here must be equal.

use serde_json::{Map, Value};

use super::{mapping::Kind, recordings::relative};

/// How the value of a place is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Equal, or a sentence that names made-up things.
    Equal,
    /// A point in time: only its form counts.
    Time,
    /// A made-up number or word.
    Made(Kind),
    /// Consumer, token and secret with colons between.
    Key,
    /// A host name and the domain behind it.
    Fqdn,
    /// A path of the API.
    Uri,
}

/// What the next part of a path names, after this part.
pub fn kind_after(collection: &str, before: Option<&str>) -> Option<Kind> {
    Some(match collection {
        "machines" | "nodes" | "devices" | "rackcontrollers" | "regioncontrollers" => Kind::Machine,
        "interfaces" => Kind::Interface,
        "blockdevices" => Kind::BlockDevice,
        "partition" | "partitions" => Kind::Partition,
        "volume-group" | "volume-groups" | "raid" | "raids" | "bcache" | "bcaches" | "bcache-cache-set" | "bcache-cache-sets" => {
            Kind::StorageSet
        }
        // Below a fabric a VLAN goes by its tag.
        "vlans" if before == Some("fabrics") => return None,
        "vlans" => Kind::Vlan,
        "subnets" => Kind::Subnet,
        "fabrics" => Kind::Fabric,
        "spaces" => Kind::Space,
        "domains" => Kind::Domain,
        "dnsresources" => Kind::DnsResource,
        "dnsresourcerecords" => Kind::DnsRecord,
        "ipranges" => Kind::IpRange,
        "reservedips" => Kind::ReservedIp,
        "boot-resources" => Kind::Image,
        "upload" => Kind::Upload,
        "sshkeys" => Kind::SshKey,
        "resourcepool" | "resourcepools" => Kind::Pool,
        "vm-hosts" | "pods" => Kind::VmHost,
        "vm-clusters" => Kind::VmCluster,
        "results" => Kind::ScriptSet,
        _ => return None,
    })
}

/// The parts of a path, each with what it names.
pub fn parts(path: &str) -> Vec<(&str, Option<Kind>)> {
    let parts: Vec<&str> = path.split('/').collect();
    let named = |index: usize| {
        let collection = parts.get(index.checked_sub(1)?)?;
        let before = index.checked_sub(3).and_then(|index| parts.get(index)).copied();
        kind_after(collection, before)
    };
    parts.iter().enumerate().map(|(index, part)| (*part, named(index))).collect()
}

/// What `id` means in an object with this URI.
fn kind_of_uri(uri: &str) -> Option<Kind> {
    let path = relative(uri).trim_end_matches('/');
    match path.split_once('/') {
        // Zones go by name in paths and have a number all the same.
        Some(("zones", _)) => Some(Kind::Zone),
        _ => parts(path).last().and_then(|(_, kind)| *kind),
    }
}

/// What `id` means in a list or object of this name that has no URI.
fn kind_below(parent: &str) -> Option<Kind> {
    Some(match parent {
        "links" => Kind::Link,
        "events" => Kind::Event,
        "bmcs" => Kind::Bmc,
        // An interface that is in no machine has no URI.
        "interface_set" => Kind::Interface,
        "dns_records" => Kind::DnsResource,
        "volume_groups" | "raids" | "bcaches" | "cache_sets" => Kind::StorageSet,
        "sshkeys" => Kind::SshKey,
        _ => return None,
    })
}

/// How the value at `key` of `object` is compared. `parent` is the key the object stands under, or the collection that was asked.
pub fn place(key: &str, object: &Map<String, Value>, parent: &str) -> Place {
    match key {
        "id" => {
            let uri = object.get("resource_uri").and_then(Value::as_str);
            let kind = uri.map_or_else(|| kind_below(parent), kind_of_uri);
            kind.map_or(Place::Equal, Place::Made)
        }
        "system_id" | "node" | "primary_rack" | "secondary_rack" => Place::Made(Kind::Machine),
        "device_id" => Place::Made(Kind::BlockDevice),
        "fabric_id" => Place::Made(Kind::Fabric),
        "link_id" => Place::Made(Kind::Link),
        "virtualmachine_id" => Place::Made(Kind::VirtualMachine),
        "dnsresource_id" => Place::Made(Kind::DnsResource),
        "dnsdata_id" => Place::Made(Kind::DnsRecord),
        "current_commissioning_result_id" | "current_installation_result_id" | "current_testing_result_id" => Place::Made(Kind::ScriptSet),
        "uuid" => Place::Made(Kind::Uuid),
        "mac_address" => Place::Made(Kind::Mac),
        "hostname" => Place::Made(Kind::Hostname),
        "token_key" | "token_secret" | "consumer_key" => Place::Made(Kind::Token),
        "token" => Place::Key,
        "fqdn" => Place::Fqdn,
        "resource_uri" | "next_uri" | "prev_uri" => Place::Uri,
        "created" | "updated" | "last_sync" | "next_sync" | "last_deployed" => Place::Time,
        _ => Place::Equal,
    }
}

/// What a number in a request names, by its key and operation.
pub fn kind_of_parameter(key: &str, operation: Option<&str>) -> Option<Kind> {
    Some(match (key, operation) {
        ("id", Some("unlink_subnet")) => Kind::Link,
        ("parent" | "parents", _) => Kind::Interface,
        ("subnet", _) => Kind::Subnet,
        ("vlan", _) => Kind::Vlan,
        ("zone", _) => Kind::Zone,
        ("pool", _) => Kind::Pool,
        ("domain", _) => Kind::Domain,
        ("fabric", _) => Kind::Fabric,
        ("space", _) => Kind::Space,
        ("before" | "after", _) => Kind::Event,
        _ => return None,
    })
}

/// Whether a made-up value of this kind can look like this, so that a free place does not take anything.
pub fn has_form(kind: Kind, value: &str) -> bool {
    let all = |test: fn(&char) -> bool| !value.is_empty() && value.chars().all(|character| test(&character));
    match kind {
        Kind::Machine => value.len() == 6 && all(|character| character.is_ascii_digit() || character.is_ascii_lowercase()),
        Kind::Hostname => {
            let words: Vec<&str> = value.split('-').collect();
            words.len() == 2 && words.iter().all(|word| !word.is_empty() && word.chars().all(|character| character.is_ascii_lowercase()))
        }
        Kind::Mac => {
            let octets: Vec<&str> = value.split(':').collect();
            let octet = |octet: &&str| octet.len() == 2 && octet.chars().all(|digit| matches!(digit, '0'..='9' | 'a'..='f'));
            octets.len() == 6 && octets.iter().all(octet)
        }
        Kind::Token => matches!(value.len(), 18 | 32) && all(char::is_ascii_alphanumeric),
        Kind::Uuid => {
            let lengths: Vec<usize> = value.split('-').map(str::len).collect();
            lengths == [8, 4, 4, 4, 12] && all(|character| matches!(character, '0'..='9' | 'a'..='f' | '-'))
        }
        _ => value.parse::<u32>().is_ok(),
    }
}

/// The form of a point in time: digits and names replaced, fractions of a second dropped, which MAAS leaves out when they are zero.
pub fn form_of_time(time: &str) -> String {
    let mut form = String::new();
    let mut characters = time.chars().peekable();
    while let Some(character) = characters.next() {
        let fraction = character == '.' && form.ends_with('0') && characters.peek().is_some_and(char::is_ascii_digit);
        if fraction {
            while characters.next_if(char::is_ascii_digit).is_some() {}
        } else if character.is_ascii_digit() {
            form.push('0');
        } else if character.is_ascii_lowercase() || character.is_ascii_uppercase() && !matches!(character, 'T' | 'Z') {
            form.push('a');
        } else {
            form.push(character);
        }
    }
    form
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_what_they_hold() {
        let named = |path| parts(path).into_iter().filter_map(|(part, kind)| Some((part, kind?))).collect::<Vec<_>>();
        assert_eq!(
            named("/MAAS/api/2.0/nodes/abc123/blockdevices/2/partition/7"),
            [("abc123", Kind::Machine), ("2", Kind::BlockDevice), ("7", Kind::Partition)]
        );
        assert_eq!(named("/MAAS/api/2.0/fabrics/1/vlans/0/"), [("1", Kind::Fabric)]);
    }

    #[test]
    fn an_id_is_named_by_its_object() {
        let object = |value: Value| value.as_object().cloned().unwrap();
        let zone = object(serde_json::json!({"id": 4, "resource_uri": "/MAAS/api/2.0/zones/az3/"}));
        assert_eq!(place("id", &zone, ""), Place::Made(Kind::Zone));
        let link = object(serde_json::json!({"id": 4, "mode": "auto"}));
        assert_eq!(place("id", &link, "links"), Place::Made(Kind::Link));
        assert_eq!(place("id", &link, "storage_pools"), Place::Equal);
        assert_eq!(place("memory", &link, ""), Place::Equal);
    }

    #[test]
    fn times_are_compared_by_form() {
        assert_eq!(form_of_time("2026-11-15T19:50:44.086Z"), form_of_time("2026-11-15T19:50:44Z"));
        assert_eq!(form_of_time("Sun, 15 Nov. 2026 19:47:54"), form_of_time("Mon, 16 Nov. 2026 00:00:01"));
        assert_ne!(form_of_time("2026-11-15T19:50:44Z"), form_of_time("2026-11-15T19:50:44"));
        assert_ne!(form_of_time("yesterday"), form_of_time("2026-11-15T19:50:44"));
    }
}
