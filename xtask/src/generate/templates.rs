//! Templates of clusters that differ from the usual one in a few lines.

use std::fs;

use anyhow::{Context as _, ensure};

use super::{COMPONENTS, Page};
use crate::command::repository;

/// MAAS boots nothing into less memory.
const MEMORY_OF_A_SYSTEM_IN_IT: &str = "16384";

/// Machines that run from their memory and leave their disks alone.
pub fn ephemeral() -> anyhow::Result<Page> {
    let usual = format!("{COMPONENTS}/cluster-template.yaml");
    let text = fs::read_to_string(repository().join(&usual)).with_context(|| format!("could not read {usual}"))?;
    Ok((format!("{COMPONENTS}/cluster-template-ephemeral.yaml"), in_memory(&text)?))
}

fn in_memory(usual: &str) -> anyhow::Result<String> {
    let mut lines = vec![
        "# Written by `cargo xtask generate` from cluster-template.yaml; changes made here are lost.".to_owned(),
        "# A cluster whose machines run from their memory: nothing is installed on a disk. Needs MAAS 3.5.10, 3.6.3, 3.7.1 or newer."
            .to_owned(),
    ];
    let mut machines = 0;
    // Its first line says what the usual one is.
    for line in usual.lines().skip(1) {
        match line.split_once("image: ") {
            Some((indentation, _)) => {
                machines += 1;
                lines.extend([line.to_owned(), format!("{indentation}deployInMemory: true")]);
            }
            None if line.contains("minMemory: ") => lines.push(line.replace("4096", MEMORY_OF_A_SYSTEM_IN_IT)),
            None => lines.push(line.to_owned()),
        }
    }
    ensure!(machines == 2, "cluster-template.yaml has {machines} templates of machines where a control plane and workers are expected");
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_runs_from_enough_memory() {
        let usual = "# The usual\nspec:\n  image: a\n  minMemory: ${X:=4096}\n---\nspec:\n  image: b\n  minMemory: ${Y:=4096}\n";
        let text = in_memory(usual).unwrap();
        assert!(!text.contains("The usual"), "{text}");
        for line in [
            "  image: a\n  deployInMemory: true\n  minMemory: ${X:=16384}\n",
            "  image: b\n  deployInMemory: true\n  minMemory: ${Y:=16384}\n",
        ] {
            assert!(text.contains(line), "{line:?} is not in\n{text}");
        }
        assert!(in_memory("# The usual\nimage: a\n").unwrap_err().to_string().contains("1 templates"));
    }
}
