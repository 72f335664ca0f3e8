//! The MAAS of `metalshift lab up --fleet`: its fleet is looked at before anything starts, and people are told how to reach it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use lab::{Control, LabDirectory, Level};
use maas_emulator::{Emulator, Options};
use tempfile::NamedTempFile;

use crate::fleet_file::{self, FleetFile};
use crate::output;

/// What stands for the fleet that is built in; a file of this name is `./three-zones`.
pub const THREE_ZONES: &str = "three-zones";

/// What a lab's MAAS will hold.
pub struct Maas {
    /// Its file; none for the usual fleet.
    pub fleet: Option<PathBuf>,
    /// That file, where it had to be written: it stays until the lab has copied it.
    _written: Option<NamedTempFile>,
    /// Users and their keys, the first one first.
    keys: Vec<(String, String)>,
    level: Level,
}

impl Maas {
    /// Reads the fleet and fails where the MAAS would, with the same words.
    pub fn read(fleet: PathBuf, level: Level) -> anyhow::Result<Self> {
        let file = Some(fleet).filter(|name| name != Path::new(THREE_ZONES));
        let file = file.map(std::path::absolute).transpose().context("the fleet file has no path")?;
        let FleetFile { name, fleet, is_as_written } = fleet_file::read(file.as_deref(), level == Level::Nodes)?;
        let written = if is_as_written {
            None
        } else {
            let written = NamedTempFile::new().context("could not write the fleet")?;
            fs::write(written.path(), serde_json::to_string(&fleet)?).context("could not write the fleet")?;
            Some(written)
        };
        let file = written.as_ref().map(|written| written.path().to_owned()).or(file);
        let emulator = Emulator::new(fleet, Options::default()).with_context(|| name.clone())?;
        emulator.world(|world| {
            for subnet in world.subnets.values().filter(|_| level == Level::Nodes) {
                if let Some(conflict) = lab::conflict(&subnet.cidr) {
                    bail!("{name}: subnets: {conflict}: choose another one");
                }
            }
            let key = |token: &maas_emulator::world::people::Token| (world.user_name(token.user).to_owned(), token.key());
            Ok(Maas { fleet: file, _written: written, keys: world.tokens.iter().map(key).collect(), level })
        })
    }

    /// Says where it is and with which key, and leaves that in a file that only this person's shells can read.
    pub async fn introduce(&self, directory: &LabDirectory) -> anyhow::Result<()> {
        let status = Control::of(directory).status().await?;
        let component = status.components.iter().find(|component| component.name == lab::MAAS).context("the lab has no MAAS")?;
        let mut lines = vec![format!("export MAAS_ENDPOINT={}", component.address)];
        lines.extend(self.keys.iter().take(1).map(|(_, key)| format!("export MAAS_API_KEY={key}")));
        lines.extend(self.keys.iter().skip(1).map(|(user, key)| format!("# {user}: {key}")));
        let file = directory.path().join("maas.env");
        lab::write_private(&file, lines.join("\n") + "\n")?;
        let machines =
            if self.level == Level::Nodes { "its machines boot in this lab" } else { "its machines are simulated, level nodes boots them" };
        output::note(format!("a MAAS is beside it, and {machines}; `. {}` sets:", file.display()));
        for line in lines {
            output::note(format!("  {line}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use maas_emulator::Fleet;

    use super::*;

    #[test]
    fn where_machines_boot_nobody_knows_the_key_who_was_not_told() {
        let read = |level| Maas::read(THREE_ZONES.into(), level).unwrap();
        let (one, another) = (read(Level::Nodes), read(Level::Nodes));
        let users = |maas: &Maas| maas.keys.iter().map(|(user, _)| user.clone()).collect::<Vec<_>>();
        assert_eq!(users(&one), users(&read(Level::Capi)), "an administrator and a plain user");
        let known = read(Level::Capi).keys;
        assert!(one.keys.iter().all(|key| !known.contains(key) && !another.keys.contains(key)), "{:?}", one.keys);
        let text = fs::read_to_string(one.fleet.as_ref().unwrap()).unwrap();
        let started = Emulator::new(Fleet::from_yaml(&text).unwrap(), Options::default()).unwrap();
        let usual = Emulator::new(Fleet::from_yaml(Fleet::THREE_ZONES).unwrap(), Options::default()).unwrap();
        let machines =
            |emulator: &Emulator| emulator.world(|world| world.all_machines().map(|machine| machine.hostname.clone()).collect::<Vec<_>>());
        assert_eq!(machines(&started), machines(&usual));
        assert!(text.contains(&one.keys[0].1), "the lab starts it with the key that people are told");
        assert_eq!(read(Level::Capi).keys[0].1, Fleet::DEFAULT_KEY, "nothing boots there");
    }

    #[test]
    fn users_that_a_fleet_names_keep_their_keys_and_get_those_they_have_not() {
        let read = |text: &str| {
            let mut file = NamedTempFile::new().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            (Maas::read(file.path().to_owned(), Level::Nodes).unwrap(), file)
        };
        let ada = ("ada".to_owned(), "a:b:c".to_owned());
        let (maas, file) = read("users: [{name: ada, keys: [{key: 'a:b:c'}]}]");
        assert_eq!((maas.keys, maas.fleet.as_deref()), (vec![ada.clone()], Some(file.path())));
        let (maas, _file) = read("users: [{name: ada, keys: [{key: 'a:b:c'}]}, {name: grace}]");
        let (another, _file) = read("users: [{name: ada, keys: [{key: 'a:b:c'}]}, {name: grace}]");
        assert_eq!((&maas.keys[0], maas.keys.len()), (&ada, 2));
        assert_ne!(maas.keys[1], another.keys[1], "not from a seed that everybody knows");
        let text = fs::read_to_string(maas.fleet.as_ref().unwrap()).unwrap();
        assert!(text.contains(&maas.keys[1].1), "the lab starts it with the key that people are told");
    }
}
