//! `cargo xtask image`: the program as an OCI image archive, without a daemon. `make docker-build` and the tests of the package call it.
//!
//! The image holds one static program and the certificates it checks servers with; there is no shell and no library in it. The same
//! sources, compiler, certificates and gzip give the same digest, wherever the clone is.

#[path = "../../crates/lab/src/images/archive.rs"]
mod archive;

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::{
    command::{cargo, command, repository, run as run_command},
    generate::target_directory,
    output::{data, say},
};

/// What is shipped may have so many bytes.
const LARGEST: u64 = 20_000_000;
const SHIPPED: &str = "dist";
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Nobody in particular; the Deployment says the same.
const USER: &str = "65532";

/// What to build.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The profile of cargo; only what `dist` makes is meant to be shipped and held to its size
    #[arg(long, default_value = SHIPPED)]
    profile: String,
    /// What the image is for; only this machine's own can be built
    #[arg(long, value_enum, default_value_t = Architecture::of_this_machine())]
    architecture: Architecture,
    /// Where the archive goes [default: image/metalshift-VERSION-ARCHITECTURE.tar in the target directory]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Architecture {
    Amd64,
    Arm64,
}

impl Architecture {
    fn of_this_machine() -> Self {
        if archive::architecture() == Self::Arm64.name() { Self::Arm64 } else { Self::Amd64 }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    fn target(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-gnu",
            Self::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }
}

/// The name of the image, as the manifests have it.
pub fn name() -> String {
    format!("metalshift/metalshift:v{}", env!("CARGO_PKG_VERSION"))
}

/// Builds the program and packs it; prints the archive, the digest of the image and the size.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let architecture = arguments.architecture;
    ensure!(
        architecture == Architecture::of_this_machine(),
        "this machine cannot build for {0}: the C library is linked into the program, and only its own is here; run it on an {0} machine",
        architecture.name()
    );
    let program = build(&arguments.profile, architecture)?;
    let usual = || Ok(target_directory()?.join(format!("image/metalshift-v{}-{}.tar", env!("CARGO_PKG_VERSION"), architecture.name())));
    let output = arguments.output.clone().map_or_else(usual, |path| std::path::absolute(path).map_err(anyhow::Error::from))?;
    let digest = pack(&program, Path::new(CERTIFICATES), architecture, &output)?;
    let size = fs::metadata(&output)?.len();
    check_size(&arguments.profile, size).with_context(|| format!("{} is not to be shipped", output.display()))?;
    say(format!("{}, {} kB", name(), size / 1000));
    data(format!("{}\t{digest}\t{size}", output.display()));
    Ok(())
}

/// What is shipped is held to its size; other profiles are for tests and larger.
fn check_size(profile: &str, size: u64) -> anyhow::Result<()> {
    ensure!(profile != SHIPPED || size <= LARGEST, "it has {size} bytes, and {LARGEST} are allowed");
    Ok(())
}

/// Builds the program so that it needs nothing of the system it runs on, and holds no path of the system it was built on.
fn build(profile: &str, architecture: Architecture) -> anyhow::Result<PathBuf> {
    let target = target_directory()?;
    let home = std::env::var_os("HOME").unwrap_or_default();
    let cargo_home = std::env::var_os("CARGO_HOME").map_or_else(|| Path::new(&home).join(".cargo"), PathBuf::from);
    let mut flags = OsString::from("-Ctarget-feature=+crt-static");
    for (path, shown) in [(&cargo_home, "/cargo"), (&repository(), "/metalshift"), (&target, "/target")] {
        for part in ["\u{1f}--remap-path-prefix=".as_ref(), path.as_os_str(), "=".as_ref(), shown.as_ref()] {
            flags.push(part);
        }
    }
    let mut build = cargo(&["build", "--locked", "--package", "metalshift", "--profile", profile, "--target", architecture.target()]);
    // Nobody debugs in a container without a debugger; what only that would read would be most of the image.
    build.args(["debug=false", "strip=true"].iter().flat_map(|setting| ["--config".to_owned(), format!("profile.{profile}.{setting}")]));
    run_command(build.env("CARGO_ENCODED_RUSTFLAGS", flags))?;
    let directory = if profile == "dev" { "debug" } else { profile };
    Ok(target.join(architecture.target()).join(directory).join("metalshift"))
}

/// Writes the archive; says the digest of the image.
fn pack(program: &Path, certificates: &Path, architecture: Architecture, to: &Path) -> anyhow::Result<String> {
    let parent = to.parent().context("an archive has to be in a directory")?;
    fs::create_dir_all(parent).with_context(|| format!("could not create {}", parent.display()))?;
    let beside = tempfile::tempdir_in(parent).context("could not make a temporary directory")?;
    let (tar, compressed, whole) = (beside.path().join("tar"), beside.path().join("gz"), beside.path().join("archive"));
    write_layer(program, certificates, &tar)?;
    // Neither name nor time get into what it writes.
    run_command(command("gzip").args(["--best", "--no-name", "--stdout"]).arg(&tar).stdout(File::create(&compressed)?))?;
    let image = archive::Image {
        names: vec![format!("docker.io/{}", name())],
        runs: json!({
            "User": format!("{USER}:{USER}"),
            "Entrypoint": ["/metalshift"],
            "WorkingDir": "/",
            "Labels": {"org.opencontainers.image.title": "metalshift", "org.opencontainers.image.version": env!("CARGO_PKG_VERSION")},
        }),
    };
    let layer = archive::Layer { file: &compressed, tar: &tar };
    let digests = archive::write(&[image], layer, architecture.name(), &whole).context("could not write the archive")?;
    fs::rename(&whole, to).with_context(|| format!("could not write {}", to.display()))?;
    digests.into_iter().next().context("the archive has no image")
}

/// Owner, time and order are the same every time.
fn write_layer(program: &Path, certificates: &Path, to: &Path) -> anyhow::Result<()> {
    let content = fs::read(certificates)
        .with_context(|| format!("could not read {}: install the package ca-certificates", certificates.display()))?;
    let mut layer = tar::Builder::new(io::BufWriter::new(File::create(to)?));
    let mut add = |path: &str, mode: u32, content: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(if path.ends_with('/') { tar::EntryType::Directory } else { tar::EntryType::Regular });
        header.set_mode(mode);
        header.set_size(content.len() as u64);
        layer.append_data(&mut header, path, content)
    };
    add("etc/", 0o755, &[])?;
    add("etc/passwd", 0o644, format!("metalshift:x:{USER}:{USER}:metalshift:/:/\n").as_bytes())?;
    add("etc/ssl/", 0o755, &[])?;
    add("etc/ssl/certs/", 0o755, &[])?;
    add("etc/ssl/certs/ca-certificates.crt", 0o644, &content)?;
    add("metalshift", 0o755, &fs::read(program).with_context(|| format!("could not read {}", program.display()))?)?;
    add("tmp/", 0o1777, &[])?;
    layer.into_inner()?.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, io::Read as _};

    use serde_json::Value;

    use super::*;

    fn entries(bytes: &[u8]) -> BTreeMap<String, (u32, Vec<u8>)> {
        let mut archive = tar::Archive::new(bytes);
        let read = |entry: io::Result<tar::Entry<'_, &[u8]>>| {
            let (mut entry, mut content) = (entry.unwrap(), Vec::new());
            entry.read_to_end(&mut content).unwrap();
            (entry.path().unwrap().display().to_string(), (entry.header().mode().unwrap(), content))
        };
        archive.entries().unwrap().map(read).collect()
    }

    #[test]
    fn the_same_program_is_the_same_image_and_everything_named_in_it_is_in_it() {
        let directory = tempfile::tempdir().unwrap();
        let (program, certificates) = (directory.path().join("program"), directory.path().join("certificates"));
        fs::write(&program, "a program").unwrap();
        fs::write(&certificates, "certificates").unwrap();
        let archives = [directory.path().join("one.tar"), directory.path().join("two.tar")];
        let digests = archives.each_ref().map(|archive| pack(&program, &certificates, Architecture::Arm64, archive).unwrap());
        assert_eq!(digests[0], digests[1]);
        let bytes = fs::read(&archives[0]).unwrap();
        assert_eq!(bytes, fs::read(&archives[1]).unwrap());

        let blobs = entries(&bytes);
        let blob = |digest: &Value| &blobs[&format!("blobs/{}", digest.as_str().unwrap().replace(':', "/"))].1;
        let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
        let index = json(&blobs["index.json"].1);
        let described = &index["manifests"][0];
        assert_eq!(described["digest"], digests[0]);
        assert_eq!(described["annotations"]["org.opencontainers.image.ref.name"], name());
        let manifest = json(blob(&described["digest"]));
        let configuration = json(blob(&manifest["config"]["digest"]));
        assert_eq!((&configuration["architecture"], &configuration["config"]["User"]), (&json!("arm64"), &json!("65532:65532")));
        assert_eq!(manifest["layers"][0]["size"], blob(&manifest["layers"][0]["digest"]).len());

        let compressed = directory.path().join("layer.gz");
        fs::write(&compressed, blob(&manifest["layers"][0]["digest"])).unwrap();
        let layer = std::process::Command::new("gzip").args(["--decompress", "--stdout"]).arg(&compressed).output().unwrap().stdout;
        let files = entries(&layer);
        assert_eq!(files["metalshift"], (0o755, b"a program".to_vec()));
        assert_eq!(files["etc/ssl/certs/ca-certificates.crt"], (0o644, b"certificates".to_vec()));
        assert_eq!(files["tmp/"].0, 0o1777);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 5, "nothing is left beside the archives");
    }

    #[test]
    fn what_is_shipped_is_held_to_its_size_and_that_is_what_is_built_unless_somebody_says_otherwise() {
        #[derive(clap::Parser)]
        struct Image {
            #[command(flatten)]
            arguments: Arguments,
        }
        let usual = <Image as clap::Parser>::parse_from(["image"]).arguments.profile;
        check_size(&usual, LARGEST).unwrap();
        let refused = check_size(&usual, LARGEST + 1).unwrap_err().to_string();
        assert_eq!(refused, "it has 20000001 bytes, and 20000000 are allowed");
        check_size("dev", LARGEST + 1).unwrap();
    }

    #[test]
    fn an_architecture_that_cannot_be_built_here_is_refused_with_the_reason() {
        let other = [Architecture::Amd64, Architecture::Arm64].into_iter().find(|one| *one != Architecture::of_this_machine()).unwrap();
        let arguments = Arguments { profile: SHIPPED.to_owned(), architecture: other, output: None };
        assert!(run(&arguments).unwrap_err().to_string().contains("only its own is here"));
    }

    #[test]
    fn certificates_that_are_missing_are_named_with_their_package() {
        let directory = tempfile::tempdir().unwrap();
        let refused = write_layer(Path::new("/nonexistent"), Path::new("/nonexistent/certificates"), &directory.path().join("layer"));
        assert!(format!("{:#}", refused.unwrap_err()).contains("install the package ca-certificates"));
    }
}
