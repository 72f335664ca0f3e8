//! `cargo xtask release DIR`: the provider as a repository on disk that `clusterctl` installs from, with a configuration that names it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::{
    command::repository,
    generate::COMPONENTS,
    output::{data, say},
};

/// Where to write.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The directory; files of an earlier run are replaced
    directory: PathBuf,
}

/// Writes the repository and prints the path of the configuration.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let directory = std::path::absolute(&arguments.directory).context("a directory has to have a name")?;
    let configuration = write(&repository().join(COMPONENTS), &directory)?;
    say(format!("now: clusterctl init --infrastructure maas --config {}", configuration.display()));
    data(configuration.display().to_string());
    Ok(())
}

/// The layout is clusterctl's: the kind of provider, the version, and the files of a release.
fn write(from: &Path, directory: &Path) -> anyhow::Result<PathBuf> {
    let version = format!("v{}", env!("CARGO_PKG_VERSION"));
    let into = directory.join("infrastructure-maas").join(&version);
    fs::create_dir_all(&into).with_context(|| format!("could not create {}", into.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("could not read {}", from.display()))? {
        let entry = entry?;
        fs::copy(entry.path(), into.join(entry.file_name())).with_context(|| format!("could not copy {}", entry.path().display()))?;
    }
    let components = into.join("infrastructure-components.yaml");
    ensure!(components.is_file(), "{} has no infrastructure-components.yaml: run `cargo xtask generate`", from.display());
    // clusterctl reads the Deployment before it fills variables in when it lists images: what is a number has to be one by then.
    let filled = fs::read_to_string(&components)?.replace("${CAPMAAS_REPLICAS:=1}", "1");
    fs::write(&components, filled).with_context(|| format!("could not write {}", components.display()))?;
    let url = serde_json::to_string(&components)?;
    let configuration = directory.join("clusterctl.yaml");
    let text = format!("providers:\n- name: maas\n  type: InfrastructureProvider\n  url: {url}\n");
    fs::write(&configuration, text).with_context(|| format!("could not write {}", configuration.display()))?;
    Ok(configuration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_names_the_components_beside_everything_of_their_release() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        fs::create_dir(&from).unwrap();
        assert!(write(&from, &to).unwrap_err().to_string().contains("cargo xtask generate"));
        for name in ["infrastructure-components.yaml", "metadata.yaml", "cluster-template-small.yaml"] {
            fs::write(from.join(name), "replicas: ${CAPMAAS_REPLICAS:=1}\nkey: ${MAAS_API_KEY}\n").unwrap();
        }
        let configuration: serde_json::Value = serde_saphyr::from_str(&fs::read_to_string(write(&from, &to).unwrap()).unwrap()).unwrap();
        let components = PathBuf::from(configuration["providers"][0]["url"].as_str().unwrap());
        assert_eq!(
            fs::read_to_string(&components).unwrap(),
            "replicas: 1\nkey: ${MAAS_API_KEY}\n",
            "a number is one, and other variables stay"
        );
        assert!(components.with_file_name("metadata.yaml").is_file() && components.with_file_name("cluster-template-small.yaml").is_file());
        assert!(components.parent().unwrap().ends_with(format!("infrastructure-maas/v{}", env!("CARGO_PKG_VERSION"))));
    }
}
