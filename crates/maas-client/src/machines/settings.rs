//! What a machine shall be: for making one known to MAAS and for changing one.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret as _, SecretString};

use crate::{call::Form, units::MebiBytes};

/// Parameters that an error may quote, since it says little without them. All others are taken for secrets.
const NO_SECRETS: [&str; 8] =
    ["power_address", "power_user", "power_id", "power_driver", "power_boot_type", "mac_address", "instance_name", "project"];

/// What a machine shall be; what is not given stays as it is. For administrators.
#[derive(Clone, Debug, Default)]
pub struct MachineSettings {
    /// The first label of its name.
    pub hostname: Option<String>,
    /// What it is, for people.
    pub description: Option<String>,
    /// The domain its name is in.
    pub domain: Option<String>,
    /// Its zone, by name.
    pub zone: Option<String>,
    /// Its pool, by name.
    pub pool: Option<String>,
    /// Its architecture, such as `amd64/generic`.
    pub architecture: Option<String>,
    /// The oldest kernel it may be deployed with.
    pub min_hwe_kernel: Option<String>,
    /// How much swap it gets, in bytes.
    pub swap_size: Option<u64>,
    /// How many threads MAAS thinks it has.
    pub cpu_count: Option<u32>,
    /// How much memory MAAS thinks it has.
    pub memory: Option<MebiBytes>,
    /// How its power is switched, such as `ipmi` or `lxd`.
    pub power_type: Option<String>,
    /// The parameters of that, without the prefix `power_parameters_`. Errors quote none of them but addresses and names, such as
    /// `power_address` and `power_user`.
    pub power_parameters: BTreeMap<String, SecretString>,
}

/// A machine to be made known to MAAS.
#[derive(Clone, Debug, Default)]
pub struct NewMachine {
    /// Its MAC addresses.
    pub mac_addresses: Vec<String>,
    /// All else; the architecture and how its power is switched must be given.
    pub settings: MachineSettings,
    /// Whether to commission it at once; MAAS does if an administrator does not say.
    pub commission: Option<bool>,
    /// Takes it in as it runs, as Deployed. Since MAAS 3.1.
    pub deployed: Option<bool>,
}

impl MachineSettings {
    pub(super) fn form(&self) -> Form {
        let form = Form::new()
            .maybe("hostname", self.hostname.as_ref())
            .maybe("description", self.description.as_ref())
            .maybe("domain", self.domain.as_ref())
            .maybe("zone", self.zone.as_ref())
            .maybe("pool", self.pool.as_ref())
            .maybe("architecture", self.architecture.as_ref())
            .maybe("min_hwe_kernel", self.min_hwe_kernel.as_ref())
            .maybe("swap_size", self.swap_size)
            .maybe("cpu_count", self.cpu_count)
            .maybe("memory", self.memory)
            .maybe("power_type", self.power_type.as_ref());
        self.power_parameters.iter().fold(form, |form, (name, value)| {
            let (key, value) = (format!("power_parameters_{name}"), value.expose_secret());
            if NO_SECRETS.contains(&name.as_str()) { form.with(key, value) } else { form.with_secret(key, value) }
        })
    }
}

impl NewMachine {
    pub(super) fn form(&self) -> Form {
        self.settings
            .form()
            .each("mac_addresses", &self.mac_addresses)
            .maybe("commission", self.commission)
            .maybe("deployed", self.deployed)
    }
}
