//! `maas/`: global settings; and the lists of things this emulator has none of.

use serde_json::{Value, json};

use crate::http::answer::{Answer, PLAIN, Refusal, Reply};
use crate::http::call::Call;
use crate::http::route::{Endpoint, Operation};
use crate::version::Version;
use crate::world::World;
use crate::world::machine::NodeKind;

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint::new("maas/", &[Operation::get_op("get_config", get), Operation::post_op("set_config", set)]),
    Endpoint::new("devices/", &[Operation::get(nothing)]),
    Endpoint::new("reservedips/", &[Operation::get(reserved_ips)]),
    Endpoint::new("rackcontrollers/", &[Operation::get(racks)]),
    Endpoint::new("regioncontrollers/", &[Operation::get(nothing)]),
];

/// What a setting may be.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Anything.
    Free,
    /// A whole number from here on.
    Number { least: i64 },
    /// On or off.
    Switch,
    /// The operating system of an image.
    OperatingSystem,
    /// The series of an image.
    Series,
    /// The series of an image of Ubuntu.
    UbuntuSeries,
    /// A way to lay out disks.
    StorageLayout,
}

/// The settings MAAS has, in its order.
const SETTINGS: &[(&str, Kind)] = &[
    ("maas_name", Kind::Free),
    ("theme", Kind::Free),
    ("kernel_opts", Kind::Free),
    ("enable_http_proxy", Kind::Switch),
    ("maas_proxy_port", Kind::Number { least: 1 }),
    ("use_peer_proxy", Kind::Switch),
    ("prefer_v4_proxy", Kind::Switch),
    ("http_proxy", Kind::Free),
    ("default_dns_ttl", Kind::Number { least: 0 }),
    ("upstream_dns", Kind::Free),
    ("dnssec_validation", Kind::Free),
    ("maas_internal_domain", Kind::Free),
    ("dns_trusted_acl", Kind::Free),
    ("ntp_servers", Kind::Free),
    ("ntp_external_only", Kind::Switch),
    ("allow_only_trusted_transfers", Kind::Switch),
    ("remote_syslog", Kind::Free),
    ("maas_syslog_port", Kind::Number { least: 1 }),
    ("network_discovery", Kind::Free),
    ("active_discovery_interval", Kind::Number { least: 0 }),
    ("default_boot_interface_link_type", Kind::Free),
    ("default_osystem", Kind::OperatingSystem),
    ("default_distro_series", Kind::Series),
    ("default_min_hwe_kernel", Kind::Free),
    ("enable_kernel_crash_dump", Kind::Switch),
    ("default_storage_layout", Kind::StorageLayout),
    ("commissioning_distro_series", Kind::UbuntuSeries),
    ("enable_third_party_drivers", Kind::Switch),
    ("windows_kms_host", Kind::Free),
    ("enable_disk_erasing_on_release", Kind::Switch),
    ("disk_erase_with_secure_erase", Kind::Switch),
    ("disk_erase_with_quick_erase", Kind::Switch),
    ("boot_images_auto_import", Kind::Switch),
    ("boot_images_no_proxy", Kind::Switch),
    ("curtin_verbose", Kind::Switch),
    ("force_v1_network_yaml", Kind::Switch),
    ("enable_analytics", Kind::Switch),
    ("completed_intro", Kind::Switch),
    ("max_node_commissioning_results", Kind::Number { least: 1 }),
    ("max_node_testing_results", Kind::Number { least: 1 }),
    ("max_node_installation_results", Kind::Number { least: 1 }),
    ("max_node_release_results", Kind::Number { least: 1 }),
    ("subnet_ip_exhaustion_threshold_count", Kind::Number { least: 0 }),
    ("release_notifications", Kind::Switch),
    ("use_rack_proxy", Kind::Switch),
    ("node_timeout", Kind::Number { least: 1 }),
    ("prometheus_enabled", Kind::Switch),
    ("prometheus_push_gateway", Kind::Free),
    ("prometheus_push_interval", Kind::Number { least: 0 }),
    ("promtail_enabled", Kind::Switch),
    ("promtail_port", Kind::Number { least: 1 }),
    ("enlist_commissioning", Kind::Switch),
    ("maas_auto_ipmi_user", Kind::Free),
    ("maas_auto_ipmi_user_privilege_level", Kind::Free),
    ("maas_auto_ipmi_k_g_bmc_key", Kind::Free),
    ("maas_auto_ipmi_cipher_suite_id", Kind::Free),
    ("maas_auto_ipmi_workaround_flags", Kind::Free),
    ("vcenter_server", Kind::Free),
    ("vcenter_username", Kind::Free),
    ("vcenter_password", Kind::Free),
    ("vcenter_datacenter", Kind::Free),
    ("hardware_sync_interval", Kind::Free),
    ("tls_cert_expiration_notification_enabled", Kind::Switch),
    ("tls_cert_expiration_notification_interval", Kind::Number { least: 1 }),
    ("session_length", Kind::Number { least: 1 }),
    ("auto_vlan_creation", Kind::Switch),
];

/// The settings MAAS writes its zone files anew for.
const PUBLISHED: [&str; 6] =
    ["upstream_dns", "dnssec_validation", "dns_trusted_acl", "default_dns_ttl", "windows_kms_host", "maas_internal_domain"];

const STORAGE_LAYOUTS: [&str; 7] = ["bcache", "blank", "custom", "flat", "lvm", "vmfs6", "vmfs7"];

fn kind_of(name: &str) -> Result<Kind, Refusal> {
    if let Some((_, kind)) = SETTINGS.iter().find(|(setting, _)| *setting == name) {
        return Ok(*kind);
    }
    let valid: Vec<&str> = SETTINGS.iter().map(|(setting, _)| *setting).collect();
    let words = format!("{name} is not a valid config setting (valid settings are: {}).", valid.join(", "));
    Err(Refusal::late_field(name, words))
}

/// The value of a setting, or what is wrong with it.
fn checked(world: &World, kind: Kind, text: &str) -> Result<Value, String> {
    let one_of = |mut known: Vec<&str>, what: &str| {
        known.sort_unstable();
        known.dedup();
        let listed: Vec<String> = known.iter().map(|choice| format!("'{choice}'")).collect();
        let wrong = || format!("'{text}' is not a valid {what}.  It should be one of: {}.", listed.join(", "));
        if known.contains(&text) { Ok(json!(text)) } else { Err(wrong()) }
    };
    let images = || world.images.values().map(crate::world::image::Image::os_and_series);
    match kind {
        Kind::Free => Ok(serde_json::from_str(text).unwrap_or_else(|_| json!(text))),
        Kind::Number { least } => whole_number(text.trim(), least).map(Value::from),
        Kind::Switch => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "t" | "1" | "yes" | "y" | "on" => Ok(Value::Bool(true)),
            "false" | "f" | "0" | "no" | "n" | "off" | "" => Ok(Value::Bool(false)),
            _ => Err("Value should be 'true' or 'false'".to_owned()),
        },
        Kind::OperatingSystem => one_of(images().map(|(os, _)| os).collect(), "operating system"),
        Kind::Series => one_of(images().map(|(_, series)| series).collect(), "release"),
        Kind::UbuntuSeries => one_of(images().filter(|(os, _)| *os == "ubuntu").map(|(_, series)| series).collect(), "release"),
        Kind::StorageLayout => one_of(STORAGE_LAYOUTS.to_vec(), "storage layout"),
    }
}

/// A setting of a fleet file as it is kept, or what is wrong with it.
pub fn setting(world: &World, name: &str, value: &Value) -> Result<Value, String> {
    let kind = kind_of(name).map_err(|_| format!("MAAS has no setting \"{name}\""))?;
    match (kind, value) {
        (Kind::Free, _) | (_, Value::Null) => Ok(value.clone()),
        (kind, Value::String(text)) => checked(world, kind, text),
        (kind, other) => checked(world, kind, &other.to_string()),
    }
}

fn whole_number(text: &str, least: i64) -> Result<i64, String> {
    const MOST: i64 = i32::MAX as i64;
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("Enter a whole number.".to_owned());
    }
    // More digits than fit are beyond the bounds in any case.
    let number = text.parse().unwrap_or(if text.starts_with('-') { i64::MIN } else { i64::MAX });
    if number < least {
        return Err(format!("Ensure this value is greater than or equal to {least}."));
    }
    if number > MOST {
        return Err(format!("Ensure this value is less than or equal to {MOST}."));
    }
    Ok(number)
}

fn get(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let name = call.query.filled("name").ok_or_else(|| Refusal::text(400, "No provided name!"))?;
    kind_of(name)?;
    let value = world.settings.get(name).cloned().unwrap_or(Value::Null);
    Ok(Answer::new(200, "application/json", value.to_string()))
}

fn set(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let name = call.form.filled("name").ok_or_else(|| Refusal::text(400, "No provided name!"))?;
    let text = call.form.get("value").ok_or_else(|| Refusal::text(400, "No provided value!"))?;
    let kind = kind_of(name)?;
    let value = checked(world, kind, text).map_err(|words| Refusal::field(name, words))?;
    let before = world.settings.insert(name.to_owned(), value.clone());
    if PUBLISHED.contains(&name) && before != Some(value) {
        world.dns_changes += 1;
    }
    Ok(Answer::new(200, PLAIN, "OK"))
}

fn nothing(_: &mut World, call: &Call) -> Reply {
    call.caller()?;
    Ok(Answer::json(&json!([])))
}

/// Since 3.6; before, the path is unknown.
fn reserved_ips(world: &mut World, call: &Call) -> Reply {
    if world.version < Version::V3_7 {
        return Err(Refusal::text(404, format!("Unknown API endpoint: /MAAS/api/2.0/{}.", call.path)));
    }
    nothing(world, call)
}

/// The rack controllers, as far as a client asks whether there are any.
fn racks(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let racks = world.machines.values().filter(|node| node.kind == NodeKind::RackController);
    let shown = racks.map(|rack| {
        json!({
            "system_id": rack.system_id,
            "hostname": rack.hostname,
            "fqdn": world.fqdn(rack),
            "node_type": 2,
            "node_type_name": "Rack controller",
            "resource_uri": format!("/MAAS/api/2.0/rackcontrollers/{}/", rack.system_id),
        })
    });
    Ok(Answer::json(&shown.collect()))
}
