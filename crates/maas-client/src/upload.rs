//! Uploading an image, piece by piece. This rests on reading MAAS's source, not on recordings: those hold an upload in one request only.

use std::{fmt::Write as _, io::SeekFrom};

use bytes::{Bytes, BytesMut};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncSeek, AsyncSeekExt as _};

use crate::{
    Error,
    boot_resources::{BootResource, BootResourceFile, BootResources},
    call::{Call, Form, Path},
};

/// As MAAS's own command line does it: small enough for every proxy.
const PIECE: usize = 4 << 20;

/// An image to be uploaded; see [`BootResources::upload`], which rests on reading MAAS's source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upload {
    /// Its name, such as `custom/edge-node`.
    pub name: String,
    /// Such as `amd64/generic`.
    pub architecture: String,
    /// What it is, for people.
    pub title: Option<String>,
    /// What is in it, such as `tgz`, `ddtgz` or `ddxz`; `tgz` without.
    pub filetype: Option<String>,
    /// What it was made from, such as `ubuntu/jammy`; custom images need it.
    pub base_image: Option<String>,
}

/// Why an upload did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UploadError {
    /// The image could not be read here.
    #[error("could not read the image {name}: {source}")]
    Content {
        /// The image.
        name: String,
        /// What the reader said.
        source: std::io::Error,
    },
    /// MAAS does not say where the image's content should go.
    #[error("MAAS took the image {name} and does not say where its content should go; delete the image and upload it again")]
    NoPlace {
        /// The image.
        name: String,
    },
    /// MAAS took every piece and does not have the whole image.
    #[error("MAAS took all of the image {name} and does not have it whole; delete the image and upload it again")]
    Incomplete {
        /// The image.
        name: String,
    },
    /// A call did not succeed. A piece whose outcome is unknown cannot be sent again: delete the image and begin anew.
    #[error(transparent)]
    Call(#[from] Error),
}

impl BootResources<'_> {
    /// Uploads an image in pieces of 4 MiB. For administrators. The content is read twice: for its checksum, then in pieces. `progress`
    /// hears after each piece how many bytes of how many MAAS has.
    ///
    /// Rests on reading MAAS's source, not on recordings: those hold an upload in one request only.
    pub async fn upload<R>(
        self,
        upload: &Upload,
        content: &mut R,
        mut progress: impl FnMut(u64, u64) + Send,
    ) -> Result<BootResource, UploadError>
    where
        R: AsyncRead + AsyncSeek + Unpin + Send,
    {
        let broken = |source| UploadError::Content { name: upload.name.clone(), source };
        let (sha256, size) = checksum(content).await.map_err(broken)?;
        let form = Form::new()
            .with("name", &upload.name)
            .with("architecture", &upload.architecture)
            .maybe("title", upload.title.as_ref())
            .maybe("filetype", upload.filetype.as_ref())
            .maybe("base_image", upload.base_image.as_ref())
            .with("sha256", &sha256)
            .with("size", size);
        let resource: BootResource = self.0.object(Call::post(Path::new("boot-resources")).form(form).about("image", &upload.name)).await?;
        let files = || resource.sets.values().flat_map(|set| set.files.values()).filter(|file| file.sha256 == sha256);
        if files().any(|file| file.complete) {
            progress(size, size);
            return Ok(resource);
        }
        let path = files().find_map(place).ok_or_else(|| UploadError::NoPlace { name: upload.name.clone() })?;
        content.seek(SeekFrom::Start(0)).await.map_err(broken)?;
        let mut sent = 0;
        while let Some(piece) = next_piece(content).await.map_err(broken)? {
            let length = piece.len() as u64;
            let place = path.iter().fold(Path::new("boot-resources"), Path::item);
            self.0.done(Call::put(place).octets(piece).once().about("image", &upload.name)).await?;
            sent += length;
            progress(sent, size);
        }
        let resource = self.read(resource.id).await?;
        let mut files = resource.sets.values().flat_map(|set| set.files.values());
        if files.any(|file| file.sha256 == sha256 && file.complete && u64::try_from(file.size.0) == Ok(size)) && sent == size {
            Ok(resource)
        } else {
            Err(UploadError::Incomplete { name: upload.name.clone() })
        }
    }
}

/// Where a file's content goes, below `boot-resources/`.
fn place(file: &BootResourceFile) -> Option<[String; 3]> {
    let (_, rest) = file.upload_uri.as_ref()?.split_once("/boot-resources/")?;
    let parts: Vec<&str> = rest.trim_end_matches('/').split('/').collect();
    match parts[..] {
        [resource, "upload", file] => Some([resource.to_owned(), "upload".to_owned(), file.to_owned()]),
        _ => None,
    }
}

async fn checksum<R: AsyncRead + AsyncSeek + Unpin>(content: &mut R) -> std::io::Result<(String, u64)> {
    content.seek(SeekFrom::Start(0)).await?;
    let mut digest = Sha256::new();
    let mut size = 0;
    while let Some(piece) = next_piece(content).await? {
        digest.update(&piece);
        size += piece.len() as u64;
    }
    let mut text = String::new();
    for byte in digest.finalize() {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok((text, size))
}

async fn next_piece<R: AsyncRead + Unpin>(content: &mut R) -> std::io::Result<Option<Bytes>> {
    let mut piece = BytesMut::with_capacity(PIECE);
    while piece.len() < PIECE && (&mut *content).take((PIECE - piece.len()) as u64).read_buf(&mut piece).await? > 0 {}
    Ok((!piece.is_empty()).then(|| piece.freeze()))
}
