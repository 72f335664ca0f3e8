//! How to release a machine.

use std::collections::BTreeMap;

use crate::call::Form;

/// How to release a machine. Its annotations, addresses and agent name go; a VM that MAAS composed on allocation is deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "as many as MAAS has")]
pub struct Release {
    /// Why, for the event log.
    pub comment: Option<String>,
    /// Erases its disks first.
    pub erase: bool,
    /// Lets the disks erase themselves where they can.
    pub secure_erase: bool,
    /// Erases only the beginning and end of disks.
    pub quick_erase: bool,
    /// Removes the VM host it is, with all its VMs.
    pub force: bool,
    /// Runs these scripts first. Since MAAS 3.5.
    pub scripts: Vec<String>,
    /// Parameters of those scripts, such as `wipe-disks_quick_erase`.
    pub script_parameters: BTreeMap<String, String>,
}

impl Release {
    pub(super) fn form(&self) -> Form {
        // Left out instead of false: MAAS takes some texts for yes here.
        let flags = [("erase", self.erase), ("secure_erase", self.secure_erase), ("quick_erase", self.quick_erase), ("force", self.force)];
        let mut form = Form::new().maybe("comment", self.comment.as_ref());
        for (name, _) in flags.iter().filter(|(_, wanted)| *wanted) {
            form = form.with(*name, true);
        }
        let scripts = (!self.scripts.is_empty()).then(|| self.scripts.join(","));
        let form = form.maybe("scripts", scripts);
        self.script_parameters.iter().fold(form, |form, (name, value)| form.with(name.clone(), value))
    }
}
