//! An OCI image archive, as `ctr images import` reads it.

use std::{
    fs::File,
    io::{self, Read as _, Write},
    path::Path,
};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Image, Runs};
use crate::LabError;

/// Writes an archive of images that share the layer in `layer`.
pub(super) fn write(images: &[Image], layer: &Path, to: &Path) -> Result<(), LabError> {
    let (digest, size) = digest_of(layer)?;
    let file = File::create(to).map_err(LabError::io("create", to))?;
    let mut archive = tar::Builder::new(io::BufWriter::new(file));
    let mut manifests = Vec::new();
    let mut written = Vec::new();
    for image in images {
        let (entry_point, command) = match image.runs {
            Runs::Always(program) => (Some([program]), None),
            Runs::ByDefault(program) => (None, Some([program])),
        };
        let configuration = json!({
            "architecture": architecture(),
            "os": "linux",
            "config": {
                "Entrypoint": entry_point,
                "Cmd": command,
                "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            },
            "rootfs": {"type": "layers", "diff_ids": [digest]},
        });
        let configuration = blob(&configuration);
        let manifest = blob(&json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {
                "mediaType": "application/vnd.oci.image.config.v1+json", "digest": configuration.0, "size": configuration.1.len(),
            },
            "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest, "size": size}],
        }));
        manifests.extend(image.names.iter().map(|name| {
            json!({
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "digest": manifest.0,
                "size": manifest.1.len(),
                "annotations": {"io.containerd.image.name": name},
            })
        }));
        written.extend([configuration, manifest]);
    }
    let index = json!({"schemaVersion": 2, "manifests": manifests});
    add(&mut archive, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    add(&mut archive, "index.json", index.to_string().as_bytes())?;
    for (digest, content) in written {
        add(&mut archive, &blob_path(&digest), &content)?;
    }
    let mut layer_file = File::open(layer).map_err(LabError::io("open", layer))?;
    let mut header = header(size);
    archive.append_data(&mut header, blob_path(&digest), &mut layer_file).map_err(LabError::io("add", layer))?;
    archive.into_inner().and_then(|mut file| file.flush()).map_err(LabError::io("write", to))
}

fn blob(content: &Value) -> (String, Vec<u8>) {
    let bytes = content.to_string().into_bytes();
    (format!("sha256:{}", hexadecimal(&Sha256::digest(&bytes))), bytes)
}

fn blob_path(digest: &str) -> String {
    format!("blobs/{}", digest.replacen(':', "/", 1))
}

fn add<W: Write>(archive: &mut tar::Builder<W>, path: &str, content: &[u8]) -> Result<(), LabError> {
    archive.append_data(&mut header(content.len() as u64), path, content).map_err(LabError::io("add", path))
}

fn header(size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(size);
    header
}

fn digest_of(path: &Path) -> Result<(String, u64), LabError> {
    let mut file = File::open(path).map_err(LabError::io("open", path))?;
    let (mut hash, mut size, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 20]);
    loop {
        let count = file.read(&mut buffer).map_err(LabError::io("read", path))?;
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

fn architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
}
