//! `boot-resources/`: images, synced or uploaded. The content of an upload is counted and digested, not kept.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::http::route::{Endpoint, Operation};
use crate::world::World;
use crate::world::id::Id;
use crate::world::image::{Image, ImageFile, ImageSet};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint::new(
        "boot-resources/",
        &[
            Operation::get(list),
            Operation::get_op("is_importing", is_importing),
            Operation::post(create),
            Operation::post_op("import", import),
            Operation::post_op("stop_import", stop_import),
        ],
    ),
    Endpoint::new("boot-resources/{}/", &[Operation::get(read), Operation::delete(delete)]),
    Endpoint::new("boot-resources/{}/upload/{}/", &[Operation::put(upload)]),
];

fn kind(image: &Image) -> &'static str {
    if image.uploaded { "Uploaded" } else { "Synced" }
}

fn render(image: &Image) -> Map<String, Value> {
    let mut object = Map::from_iter([
        ("id".to_owned(), json!(image.id)),
        ("type".to_owned(), json!(kind(image))),
        ("name".to_owned(), json!(image.name)),
        ("architecture".to_owned(), json!(image.architecture)),
        ("resource_uri".to_owned(), json!(format!("/MAAS/api/2.0/boot-resources/{}/", image.id))),
        ("last_deployed".to_owned(), json!(image.last_deployed.map(|at| at.strftime("%Y-%m-%dT%H:%M:%S.%3f").to_string()))),
    ]);
    if let Some(title) = &image.title {
        object.insert("title".into(), json!(title));
    }
    if image.uploaded {
        if !image.subarches.is_empty() {
            object.insert("subarches".into(), json!(image.subarches));
        }
        if let Some(base) = &image.base_image {
            object.insert("base_image".into(), json!(base));
        }
    } else {
        object.insert("kflavor".into(), json!("generic"));
        object.insert("platform".into(), json!("generic"));
        object.insert("subarches".into(), json!(image.subarches));
        object.insert("supported_platforms".into(), json!(image.subarches));
    }
    object
}

fn render_whole(image: &Image) -> Value {
    let mut object = render(image);
    let sets: Map<String, Value> = image.sets.iter().map(|set| (set.version.clone(), render_set(image, set))).collect();
    object.insert("sets".into(), Value::Object(sets));
    Value::Object(object)
}

fn render_set(image: &Image, set: &ImageSet) -> Value {
    let files: Map<String, Value> = set.files.iter().map(|file| (file.filename.clone(), render_file(image, file))).collect();
    json!({
        "version": set.version,
        "label": if image.uploaded { "uploaded" } else { "stable" },
        "size": set.files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.size)),
        "complete": set.is_complete(),
        "files": files,
    })
}

fn render_file(image: &Image, file: &ImageFile) -> Value {
    let complete = file.received >= file.size;
    let mut value = json!({
        "filename": file.filename,
        "filetype": file.filetype,
        "sha256": file.sha256,
        "filename_on_disk": file.sha256.get(..7).unwrap_or_default(),
        "size": file.size,
        "complete": complete,
    });
    if !complete {
        value["progress"] = json!(
            100.0 * f64::from(u32::try_from(file.received / 1024).unwrap_or(0))
                / f64::from(u32::try_from((file.size / 1024).max(1)).unwrap_or(1))
        );
        value["upload_uri"] = json!(format!("/MAAS/api/2.0/boot-resources/{}/upload/{}/", image.id, file.id));
    }
    value
}

fn list(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let wanted = call.query.filled("type");
    if let Some(wanted) = wanted.filter(|wanted| !["synced", "uploaded"].contains(wanted)) {
        return Err(Refusal::text(400, format!("'{wanted}' is not a valid boot resource type. Available types: ['synced', 'uploaded']")));
    }
    let shown = world.images.values().filter(|image| wanted.is_none_or(|wanted| (wanted == "uploaded") == image.uploaded));
    Ok(Answer::json(&shown.map(|image| Value::Object(render(image))).collect()))
}

fn is_importing(_: &mut World, call: &Call) -> Reply {
    call.caller()?;
    Ok(Answer::json(&json!(false)))
}

fn import(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    Ok(Answer::new(200, crate::http::answer::PLAIN, "Import of boot resources started"))
}

fn stop_import(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    Ok(Answer::new(200, crate::http::answer::PLAIN, "Import of boot resources is being stopped"))
}

fn find(world: &World, call: &Call) -> Result<Id<Image>, Refusal> {
    world
        .images
        .values()
        .map(|image| image.id)
        .find(|id| id.to_string() == call.argument(0))
        .ok_or_else(|| Refusal::no_match(world, "BootResource"))
}

fn read(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let id = find(world, call)?;
    Ok(Answer::json(&world.images.get(id).map(render_whole).unwrap_or_default()))
}

/// Architectures images exist for, with every kernel.
pub fn architectures(world: &World) -> Vec<String> {
    let mut known: Vec<String> = world
        .images
        .values()
        .filter(|image| !image.uploaded)
        .flat_map(|image| {
            let family = image.architecture.split('/').next().unwrap_or_default().to_owned();
            image.subarches.split(',').map(move |kernel| format!("{family}/{kernel}")).collect::<Vec<_>>()
        })
        .collect();
    known.sort();
    known.dedup();
    known
}

/// What MAAS says of an architecture it has no image for.
pub fn unknown_architecture(world: &World, architecture: &str) -> Option<String> {
    let known = architectures(world);
    if known.iter().any(|name| name == architecture) {
        return None;
    }
    let listed = if known.is_empty() { vec!["''".to_owned()] } else { known.iter().map(|name| format!("'{name}'")).collect() };
    Some(format!("'{architecture}' is not a valid architecture.  It should be one of: {}.", listed.join(", ")))
}

fn create(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let need = |key: &str| call.form.filled(key).map(str::to_owned).ok_or_else(|| Refusal::field(key, "This field is required."));
    let (name, architecture) = (need("name")?, need("architecture")?);
    if let Some(words) = unknown_architecture(world, &architecture) {
        return Err(Refusal::field("architecture", words));
    }
    let content = call.files.iter().find(|file| file.field == "content").map(|file| file.content.clone());
    let (sha256, size) = match &content {
        Some(content) => (hex(&Sha256::digest(content)), content.len() as u64),
        None => (need("sha256")?, size_wished(&need("size")?)?),
    };
    if sha256.len() != 64 || !sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Refusal::field("sha256", "Enter a valid value."));
    }
    if let Some(promised) = call.form.filled("sha256").filter(|promised| *promised != sha256) {
        return Err(Refusal::field("sha256", format!("The digest of the content is {sha256}, not {promised}.")));
    }
    let (filename, filetype) = file_names(call.form.filled("filetype").unwrap_or("tgz"))?;
    let file = ImageFile {
        id: world.next_image_file(),
        filename: filename.into(),
        filetype: filetype.into(),
        sha256,
        size,
        received: if content.is_some() { size } else { 0 },
        digest: content.is_none().then(Sha256::new),
    };
    let name = name.strip_prefix("custom/").unwrap_or(&name).to_owned();
    let kernel = architecture.split_once('/').map_or("generic", |(_, kernel)| kernel).to_owned();
    let day = world.now.strftime("%Y%m%d").to_string();
    let title = call.form.filled("title").map(str::to_owned);
    let base_image = call.form.filled("base_image").map(str::to_owned);
    let same = world.images.values().find(|image| image.uploaded && image.name == name && image.architecture == architecture).cloned();
    // What was uploaded before stays until it is deleted: machines are deployed with it while this one arrives.
    let version = same.as_ref().map_or_else(|| day.clone(), |image| image.next_version(&day));
    let mut sets = same.as_ref().map(|image| image.sets.clone()).unwrap_or_default();
    sets.push(ImageSet { version, files: vec![file] });
    let last_deployed = same.as_ref().and_then(|image| image.last_deployed);
    let make = |id| Image { id, name, architecture, uploaded: true, title, base_image, subarches: kernel, last_deployed, sets };
    let id = world.images.add(same.map(|image| image.id.0), make);
    Ok(Answer::json_with(201, &world.images.get(id).map(render_whole).unwrap_or_default()))
}

/// A number of bytes that the database has room for.
fn size_wished(text: &str) -> Result<u64, Refusal> {
    const MOST: u64 = i64::MAX as u64;
    let number: i128 = text.trim().parse().map_err(|_| Refusal::field("size", "Enter a whole number."))?;
    match u64::try_from(number) {
        Ok(size) if size <= MOST => Ok(size),
        Ok(_) => Err(Refusal::field("size", format!("Ensure this value is less than or equal to {MOST}."))),
        Err(_) if number > 0 => Err(Refusal::field("size", format!("Ensure this value is less than or equal to {MOST}."))),
        Err(_) => Err(Refusal::field("size", "Ensure this value is greater than or equal to 0.")),
    }
}

/// The name and the type of a file, from what the caller says is in it.
fn file_names(filetype: &str) -> Result<(&'static str, &'static str), Refusal> {
    Ok(match filetype {
        "tgz" => ("root.tgz", "root-tgz"),
        "ddtar" => ("root-dd.tar", "root-ddtar"),
        "ddtgz" => ("root-dd.tgz", "root-ddtgz"),
        "ddtbz" => ("root-dd.tbz", "root-ddtbz"),
        "ddtxz" => ("root-dd.txz", "root-ddtxz"),
        "ddxz" => ("root-dd.xz", "root-ddxz"),
        "ddraw" => ("root-dd.raw", "root-ddraw"),
        "ddbz2" => ("root-dd.bz2", "root-ddbz2"),
        "ddgz" => ("root-dd.gz", "root-ddgz"),
        "tbz" => ("root.tbz", "root-tbz"),
        "txz" => ("root.txz", "root-txz"),
        "squashfs" => ("squashfs", "squashfs"),
        other => {
            let words = format!("Select a valid choice. {other} is not one of the available choices.");
            return Err(Refusal::field("filetype", words));
        }
    })
}

/// A piece of an upload; pieces come in order.
fn upload(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let id = find(world, call)?;
    let piece = call.body.len() as u64;
    let mut files = world.images.get_mut(id).into_iter().flat_map(|image| &mut image.sets).flat_map(|set| &mut set.files);
    let Some(file) = files.find(|file| file.id.to_string() == call.argument(1)) else {
        return Err(Refusal::no_match(world, "BootResourceFile"));
    };
    if piece == 0 {
        return Err(Refusal::text(400, "No content received."));
    }
    if file.received.saturating_add(piece) > file.size {
        return Err(Refusal::text(400, "Too much data received."));
    }
    let mut digest = file.digest.clone();
    if let Some(digest) = &mut digest {
        digest.update(&call.body);
    }
    // The last piece is not taken when the whole is wrong.
    let is_last = file.received + piece == file.size;
    if is_last && digest.clone().is_some_and(|digest| !hex(&digest.finalize()).eq_ignore_ascii_case(&file.sha256)) {
        return Err(Refusal::text(400, "Saved content does not match given SHA256 value."));
    }
    file.received += piece;
    file.digest = digest;
    Ok(Answer::new(200, crate::http::answer::PLAIN, "OK"))
}

fn delete(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let id = find(world, call)?;
    world.images.remove(id);
    Ok(Answer::deleted())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _written = write!(text, "{byte:02x}");
        text
    })
}
