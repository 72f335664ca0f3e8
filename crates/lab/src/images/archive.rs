//! An OCI image archive, as `ctr images import` and everybody else reads it. The lab's images are written by it, and the image of the program
//! by `cargo xtask image`, which takes this file as it is: it needs nothing of the lab.

use std::{
    fs::File,
    io::{self, Read as _, Write},
    path::Path,
};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// What containerd puts before a name that names no registry; the kubelet asks for images so.
const WITHOUT_REGISTRY: &str = "docker.io/";

/// An image: the names containerd knows it by, and how it is run (`config` of an OCI image).
#[derive(Clone, Debug)]
pub struct Image {
    pub names: Vec<String>,
    pub runs: Value,
}

/// The one layer of all images of an archive.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'a> {
    /// The layer as it is stored.
    pub file: &'a Path,
    /// A tar archive that was compressed to `file`; the same file if it was not.
    pub tar: &'a Path,
}

/// Writes an archive of images that share a layer; says the digest of each image. The same input is the same archive to the byte.
pub fn write(images: &[Image], layer: Layer<'_>, architecture: &str, to: &Path) -> io::Result<Vec<String>> {
    let (digest, size) = digest_of(layer.file)?;
    let (media_type, tar_digest) = if layer.file == layer.tar {
        ("application/vnd.oci.image.layer.v1.tar", digest.clone())
    } else {
        ("application/vnd.oci.image.layer.v1.tar+gzip", digest_of(layer.tar)?.0)
    };
    let mut archive = tar::Builder::new(io::BufWriter::new(File::create(to)?));
    let (mut manifests, mut written, mut digests) = (Vec::new(), Vec::new(), Vec::new());
    for image in images {
        let configuration = blob(&json!({
            "architecture": architecture,
            "os": "linux",
            "config": image.runs,
            "rootfs": {"type": "layers", "diff_ids": [tar_digest]},
        }));
        let manifest = blob(&json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {
                "mediaType": "application/vnd.oci.image.config.v1+json", "digest": configuration.0, "size": configuration.1.len(),
            },
            "layers": [{"mediaType": media_type, "digest": digest, "size": size}],
        }));
        manifests.extend(image.names.iter().map(|name| {
            json!({
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "digest": manifest.0,
                "size": manifest.1.len(),
                "platform": {"architecture": architecture, "os": "linux"},
                "annotations": {
                    "io.containerd.image.name": name,
                    "org.opencontainers.image.ref.name": name.trim_start_matches(WITHOUT_REGISTRY),
                },
            })
        }));
        digests.push(manifest.0.clone());
        written.extend([configuration, manifest]);
    }
    let index = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests});
    add(&mut archive, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    add(&mut archive, "index.json", index.to_string().as_bytes())?;
    for (digest, content) in written {
        add(&mut archive, &blob_path(&digest), &content)?;
    }
    archive.append_data(&mut header(size), blob_path(&digest), &mut File::open(layer.file)?)?;
    archive.into_inner()?.flush()?;
    Ok(digests)
}

/// The architecture of this machine, as images name it.
pub fn architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
}

fn blob(content: &Value) -> (String, Vec<u8>) {
    let bytes = content.to_string().into_bytes();
    (format!("sha256:{}", hexadecimal(&Sha256::digest(&bytes))), bytes)
}

fn blob_path(digest: &str) -> String {
    format!("blobs/{}", digest.replacen(':', "/", 1))
}

fn add<W: Write>(archive: &mut tar::Builder<W>, path: &str, content: &[u8]) -> io::Result<()> {
    archive.append_data(&mut header(content.len() as u64), path, content)
}

fn header(size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(size);
    header
}

fn digest_of(path: &Path) -> io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let (mut hash, mut size, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 20]);
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok((format!("sha256:{}", hexadecimal(&hash.finalize())), size));
        }
        hash.update(&buffer[..count]);
        size += count as u64;
    }
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
