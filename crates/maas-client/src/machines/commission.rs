//! How to commission and test a machine.

use crate::call::Form;

/// How to commission a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "as many as MAAS has")]
pub struct Commission {
    /// Leaves it on afterwards, with SSH.
    pub enable_ssh: bool,
    /// Leaves its power controller as it is.
    pub skip_bmc_config: bool,
    /// Leaves its network settings as they are.
    pub skip_networking: bool,
    /// Leaves its storage settings as they are.
    pub skip_storage: bool,
    /// The scripts to commission with; all if there are none.
    pub commissioning_scripts: Vec<String>,
    /// The scripts to test with; `none` for none, the default ones if there are none.
    pub testing_scripts: Vec<String>,
}

/// How to test a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Test {
    /// Leaves it on afterwards, with SSH.
    pub enable_ssh: bool,
    /// The scripts; the default ones if there are none.
    pub testing_scripts: Vec<String>,
}

fn joined(scripts: &[String]) -> Option<String> {
    (!scripts.is_empty()).then(|| scripts.join(","))
}

impl Commission {
    pub(super) fn form(&self) -> Form {
        Form::new()
            .yes("enable_ssh", self.enable_ssh)
            .yes("skip_bmc_config", self.skip_bmc_config)
            .yes("skip_networking", self.skip_networking)
            .yes("skip_storage", self.skip_storage)
            .maybe("commissioning_scripts", joined(&self.commissioning_scripts))
            .maybe("testing_scripts", joined(&self.testing_scripts))
    }
}

impl Test {
    pub(super) fn form(&self) -> Form {
        Form::new().yes("enable_ssh", self.enable_ssh).maybe("testing_scripts", joined(&self.testing_scripts))
    }
}
