//! The MAAS of `metalshift lab up --fleet`: its fleet is looked at before anything starts, and people are told how to reach it.

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::{io::Write as _, path::Path};

use anyhow::{Context as _, bail};
use lab::{Control, LabDirectory, Level};
use maas_emulator::{Emulator, Fleet, Options};

use crate::output;

/// What stands for the fleet that is built in; a file of this name is `./three-zones`.
pub const THREE_ZONES: &str = "three-zones";

/// What a lab's MAAS will hold.
pub struct Maas {
    /// Its file; none for the usual fleet.
    pub fleet: Option<PathBuf>,
    /// Users and their keys, the first one first.
    keys: Vec<(String, String)>,
    level: Level,
}

impl Maas {
    /// Reads the fleet and fails where the MAAS would, with the same words.
    pub fn read(fleet: PathBuf, level: Level) -> anyhow::Result<Self> {
        let file = Some(fleet).filter(|name| name != Path::new(THREE_ZONES));
        let file = file.map(std::path::absolute).transpose().context("the fleet file has no path")?;
        let (name, text) = match &file {
            None => ("the built-in fleet".to_owned(), Fleet::THREE_ZONES.to_owned()),
            Some(path) => {
                let text = fs::read_to_string(path).with_context(|| format!("could not read the fleet file {}", path.display()))?;
                (path.display().to_string(), text)
            }
        };
        let fleet = Fleet::from_yaml(&text).with_context(|| name.clone())?;
        let emulator = Emulator::new(fleet, Options::default()).with_context(|| name.clone())?;
        emulator.world(|world| {
            for subnet in world.subnets.values().filter(|_| level == Level::Nodes) {
                if let Some(conflict) = lab::conflict(&subnet.cidr) {
                    bail!("{name}: subnets: {conflict}: choose another one");
                }
            }
            let key = |token: &maas_emulator::world::people::Token| {
                (world.user_name(token.user).to_owned(), format!("{}:{}:{}", token.consumer, token.token, token.secret))
            };
            Ok(Maas { fleet: file, keys: world.tokens.iter().map(key).collect(), level })
        })
    }

    /// Says where it is and with which key, and leaves that in a file a shell can read. Keys of an emulator protect nothing.
    pub async fn introduce(&self, directory: &LabDirectory) -> anyhow::Result<()> {
        let status = Control::of(directory).status().await?;
        let component = status.components.iter().find(|component| component.name == lab::MAAS).context("the lab has no MAAS")?;
        let mut lines = vec![format!("export MAAS_ENDPOINT={}", component.address)];
        lines.extend(self.keys.iter().take(1).map(|(_, key)| format!("export MAAS_API_KEY={key}")));
        lines.extend(self.keys.iter().skip(1).map(|(user, key)| format!("# {user}: {key}")));
        let file = directory.path().join("maas.env");
        write(&file, &lines).with_context(|| format!("could not write {}", file.display()))?;
        let machines =
            if self.level == Level::Nodes { "its machines boot in this lab" } else { "its machines are simulated, level nodes boots them" };
        output::note(format!("a MAAS is beside it, and {machines}; `. {}` sets:", file.display()));
        for line in lines {
            output::note(format!("  {line}"));
        }
        Ok(())
    }
}

fn write(file: &Path, lines: &[String]) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file)?;
    file.write_all((lines.join("\n") + "\n").as_bytes())
}
