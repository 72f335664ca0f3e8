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

/// The settings MAAS has.
const SETTINGS: &[&str] = &[
    "maas_name",
    "theme",
    "kernel_opts",
    "enable_http_proxy",
    "maas_proxy_port",
    "use_peer_proxy",
    "prefer_v4_proxy",
    "http_proxy",
    "default_dns_ttl",
    "upstream_dns",
    "dnssec_validation",
    "maas_internal_domain",
    "dns_trusted_acl",
    "ntp_servers",
    "ntp_external_only",
    "allow_only_trusted_transfers",
    "remote_syslog",
    "maas_syslog_port",
    "network_discovery",
    "active_discovery_interval",
    "default_boot_interface_link_type",
    "default_osystem",
    "default_distro_series",
    "default_min_hwe_kernel",
    "enable_kernel_crash_dump",
    "default_storage_layout",
    "commissioning_distro_series",
    "enable_third_party_drivers",
    "windows_kms_host",
    "enable_disk_erasing_on_release",
    "disk_erase_with_secure_erase",
    "disk_erase_with_quick_erase",
    "boot_images_auto_import",
    "boot_images_no_proxy",
    "curtin_verbose",
    "force_v1_network_yaml",
    "enable_analytics",
    "completed_intro",
    "max_node_commissioning_results",
    "max_node_testing_results",
    "max_node_installation_results",
    "max_node_release_results",
    "subnet_ip_exhaustion_threshold_count",
    "release_notifications",
    "use_rack_proxy",
    "node_timeout",
    "prometheus_enabled",
    "prometheus_push_gateway",
    "prometheus_push_interval",
    "promtail_enabled",
    "promtail_port",
    "enlist_commissioning",
    "maas_auto_ipmi_user",
    "maas_auto_ipmi_user_privilege_level",
    "maas_auto_ipmi_k_g_bmc_key",
    "maas_auto_ipmi_cipher_suite_id",
    "maas_auto_ipmi_workaround_flags",
    "vcenter_server",
    "vcenter_username",
    "vcenter_password",
    "vcenter_datacenter",
    "hardware_sync_interval",
    "tls_cert_expiration_notification_enabled",
    "tls_cert_expiration_notification_interval",
    "session_length",
    "auto_vlan_creation",
];

fn known(name: &str) -> Result<(), Refusal> {
    if SETTINGS.contains(&name) {
        return Ok(());
    }
    let words = format!("{name} is not a valid config setting (valid settings are: {}).", SETTINGS.join(", "));
    Err(Refusal::late_field(name, words))
}

/// Settings that are whole numbers, and the least of them.
const NUMBERS: &[(&str, i64)] = &[
    ("maas_proxy_port", 1),
    ("default_dns_ttl", 0),
    ("maas_syslog_port", 1),
    ("active_discovery_interval", 0),
    ("max_node_commissioning_results", 1),
    ("max_node_testing_results", 1),
    ("max_node_installation_results", 1),
    ("max_node_release_results", 1),
    ("subnet_ip_exhaustion_threshold_count", 0),
    ("node_timeout", 1),
    ("prometheus_push_interval", 0),
    ("promtail_port", 1),
    ("tls_cert_expiration_notification_interval", 1),
    ("session_length", 1),
];

/// Settings that are switches.
const SWITCHES: &[&str] = &[
    "enable_http_proxy",
    "use_peer_proxy",
    "prefer_v4_proxy",
    "ntp_external_only",
    "allow_only_trusted_transfers",
    "enable_kernel_crash_dump",
    "enable_third_party_drivers",
    "enable_disk_erasing_on_release",
    "disk_erase_with_secure_erase",
    "disk_erase_with_quick_erase",
    "boot_images_auto_import",
    "boot_images_no_proxy",
    "curtin_verbose",
    "force_v1_network_yaml",
    "enable_analytics",
    "completed_intro",
    "release_notifications",
    "use_rack_proxy",
    "prometheus_enabled",
    "promtail_enabled",
    "enlist_commissioning",
    "tls_cert_expiration_notification_enabled",
    "auto_vlan_creation",
];

/// The value of a setting, or what is wrong with it.
fn checked(world: &World, name: &str, text: &str) -> Result<Value, String> {
    if let Some((_, least)) = NUMBERS.iter().find(|(number, _)| *number == name) {
        return whole_number(text.trim(), *least).map(Value::from);
    }
    if SWITCHES.contains(&name) {
        return match text.trim().to_ascii_lowercase().as_str() {
            "true" | "t" | "1" | "yes" | "y" | "on" => Ok(Value::Bool(true)),
            "false" | "f" | "0" | "no" | "n" | "off" | "" => Ok(Value::Bool(false)),
            _ => Err("Value should be 'true' or 'false'".to_owned()),
        };
    }
    let one_of = |mut known: Vec<&str>, kind: &str| {
        known.sort_unstable();
        known.dedup();
        let listed: Vec<String> = known.iter().map(|choice| format!("'{choice}'")).collect();
        let wrong = || format!("'{text}' is not a valid {kind}.  It should be one of: {}.", listed.join(", "));
        if known.contains(&text) { Ok(json!(text)) } else { Err(wrong()) }
    };
    let images = || world.images.values().map(crate::world::image::Image::os_and_series);
    match name {
        "default_osystem" => one_of(images().map(|(os, _)| os).collect(), "operating system"),
        "default_distro_series" => one_of(images().map(|(_, series)| series).collect(), "release"),
        "commissioning_distro_series" => one_of(images().filter(|(os, _)| *os == "ubuntu").map(|(_, series)| series).collect(), "release"),
        "default_storage_layout" => one_of(vec!["bcache", "blank", "custom", "flat", "lvm", "vmfs6", "vmfs7"], "storage layout"),
        _ => Ok(serde_json::from_str(text).unwrap_or_else(|_| json!(text))),
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
    known(name)?;
    let value = world.settings.get(name).cloned().unwrap_or(Value::Null);
    Ok(Answer::new(200, "application/json", value.to_string()))
}

fn set(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let name = call.form.filled("name").ok_or_else(|| Refusal::text(400, "No provided name!"))?;
    let text = call.form.get("value").ok_or_else(|| Refusal::text(400, "No provided value!"))?;
    known(name)?;
    let value = checked(world, name, text).map_err(|words| Refusal::field(name, words))?;
    world.settings.insert(name.to_owned(), value);
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
