//! The fleet of an emulated MAAS as `metalshift emulator` and `lab up --fleet` read it. Where its machines boot, whoever has a key is root
//! on this computer, so every user gets one that nobody can guess, and keys that everybody can read are refused.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use maas_emulator::Fleet;
use serde_json::json;

use crate::maas_key;

/// A fleet and where it is from.
#[derive(Debug)]
pub struct FleetFile {
    /// What an error of it is about: its file, or the one that is built in.
    pub name: String,
    pub fleet: Fleet,
    /// Whether somebody who reads the same file has the same fleet.
    pub is_as_written: bool,
}

/// Reads a fleet file, or takes the built-in fleet.
pub fn read(file: Option<&Path>, boots: bool) -> anyhow::Result<FleetFile> {
    let (name, text) = match file {
        None => ("the built-in fleet".to_owned(), Fleet::THREE_ZONES.to_owned()),
        Some(path) => {
            let text = fs::read_to_string(path).with_context(|| format!("could not read the fleet file {}", path.display()))?;
            (path.display().to_string(), text)
        }
    };
    let mut fleet = Fleet::from_yaml(&text).with_context(|| name.clone())?;
    let mut is_as_written = true;
    if boots {
        if file.is_none() {
            fleet.users.iter_mut().for_each(|user| user.value.keys.clear());
        }
        fleet.refuse_published_keys().with_context(|| name.clone())?;
        is_as_written = !give_missing_keys(&mut fleet)?;
    }
    Ok(FleetFile { name, fleet, is_as_written })
}

/// Gives every user without a key one that nobody knows, and a fleet without users an administrator. Says whether somebody got one.
fn give_missing_keys(fleet: &mut Fleet) -> anyhow::Result<bool> {
    if fleet.users.is_empty() {
        fleet.users = serde_json::from_value(json!([{"name": "admin", "superuser": true}])).context("the users of the fleet")?;
    }
    let mut somebody = false;
    for user in fleet.users.iter_mut().filter(|user| user.value.keys.is_empty()) {
        user.value.keys = serde_json::from_value(json!([{"key": maas_key::random()?}])).context("the keys of the fleet")?;
        somebody = true;
    }
    Ok(somebody)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use tempfile::NamedTempFile;

    use super::*;

    fn written(text: &str) -> NamedTempFile {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn keys(fleet: &Fleet) -> Vec<(String, Vec<String>)> {
        let of = |user: &maas_emulator::fleet::User| user.keys.iter().map(|key| key.value.key.clone()).collect();
        fleet.users.iter().map(|user| (user.value.name.clone(), of(&user.value))).collect()
    }

    #[test]
    fn where_machines_boot_users_without_a_key_get_one_that_nobody_knows_and_others_keep_theirs() {
        let file = written("users: [{name: ada, keys: [{key: 'a:b:c'}]}, {name: grace, email: g@example.com}]");
        let read = |boots| super::read(Some(file.path()), boots).unwrap();
        let (one, another, simulated) = (read(true), read(true), read(false));
        assert_eq!(keys(&one.fleet)[0], ("ada".to_owned(), vec!["a:b:c".to_owned()]));
        assert_eq!((keys(&one.fleet)[1].1.len(), one.fleet.users[1].value.email.as_deref()), (1, Some("g@example.com")));
        assert_ne!(keys(&one.fleet)[1], keys(&another.fleet)[1]);
        assert!(!one.is_as_written && simulated.is_as_written);
        assert!(keys(&simulated.fleet)[1].1.is_empty(), "the emulator draws it from its seed");
    }

    #[test]
    fn where_machines_boot_a_fleet_without_users_has_an_administrator_whom_nobody_knows() {
        let file = written("machines: [{hostname: m}]");
        let read = || super::read(Some(file.path()), true).unwrap().fleet;
        let (one, another) = (read(), read());
        assert!(one.users.len() == 1 && one.users[0].value.superuser, "{:?}", one.users);
        assert_ne!(keys(&one), keys(&another));
        assert!(!Fleet::is_published(&keys(&one)[0].1[0]));
    }

    #[test]
    fn where_machines_boot_the_built_in_users_have_keys_of_their_own() {
        let read = |boots| super::read(None, boots).unwrap().fleet;
        let (one, published) = (keys(&read(true)), keys(&read(false)));
        assert_eq!(one.iter().map(|(user, _)| user).collect::<Vec<_>>(), published.iter().map(|(user, _)| user).collect::<Vec<_>>());
        let is_published = |keys: &[(String, Vec<String>)]| keys.iter().flat_map(|(_, keys)| keys).all(|key| Fleet::is_published(key));
        assert!(is_published(&published), "nothing boots there");
        assert!(one.iter().all(|(_, keys)| keys.len() == 1 && !Fleet::is_published(&keys[0])), "{one:?}");
    }

    #[test]
    fn where_machines_boot_a_file_with_a_published_key_is_refused_with_what_to_do() {
        let file = written(Fleet::THREE_ZONES);
        let said = format!("{:#}", super::read(Some(file.path()), true).unwrap_err());
        assert!(said.contains("line 5") && said.contains("users: admin: keys") && said.contains("leave `keys` out"), "{said}");
        assert!(!said.contains('\n') && said.contains(&file.path().display().to_string()), "{said}");
        super::read(Some(file.path()), false).unwrap();
    }
}
