//! `account/`: the caller's API keys and SSH keys.

use serde_json::{Value, json};

use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::http::oauth;
use crate::http::route::{Endpoint, Operation};
use crate::world::World;
use crate::world::id::Id;
use crate::world::people::SshKey;

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint::new(
        "account/",
        &[
            Operation::get_op("list_authorisation_tokens", list_tokens),
            Operation::post_op("create_authorisation_token", create_token),
            Operation::post_op("delete_authorisation_token", delete_token),
            Operation::post_op("update_token_name", rename_token),
        ],
    ),
    Endpoint::new("account/prefs/sshkeys/", &[Operation::get(list_ssh_keys), Operation::post(create_ssh_key)]),
    Endpoint::new("account/prefs/sshkeys/{}/", &[Operation::get(read_ssh_key), Operation::delete(delete_ssh_key)]),
];

fn list_tokens(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let own = world.tokens.iter().filter(|token| token.user == user);
    let shown = own.map(|token| json!({"name": token.name, "token": format!("{}:{}:{}", token.consumer, token.token, token.secret)}));
    Ok(Answer::json(&shown.collect()))
}

fn create_token(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let name = call.form.filled("name").unwrap_or("MAAS consumer").to_owned();
    let token = oauth::token_asked_for(world, user, &name)?;
    Ok(Answer::compact_json(&json!({"token_key": token.token, "token_secret": token.secret, "consumer_key": token.consumer, "name": name})))
}

fn wanted_key(call: &Call) -> Result<&str, Refusal> {
    call.form
        .filled("token_key")
        .or(call.form.filled("token"))
        .map(|text| text.split(':').nth(1).unwrap_or(text))
        .ok_or_else(|| Refusal::text(400, "No provided token_key!"))
}

fn delete_token(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let key = wanted_key(call)?;
    if !world.tokens.iter().any(|token| token.user == user && token.token == key) {
        return Err(Refusal::no_match(world, "Token"));
    }
    world.tokens.retain(|token| token.token != key);
    Ok(Answer::deleted())
}

fn rename_token(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let key = wanted_key(call)?.to_owned();
    let name = call.form.filled("name").ok_or_else(|| Refusal::text(400, "No provided name!"))?;
    match world.tokens.iter_mut().find(|token| token.user == user && token.token == key) {
        None => Err(Refusal::no_match(world, "Token")),
        Some(token) => {
            name.clone_into(&mut token.name);
            Ok(Answer::new(200, crate::http::answer::PLAIN, "Updated"))
        }
    }
}

fn ssh_key(key: &SshKey) -> Value {
    json!({"id": key.id, "key": key.key, "keysource": key.source})
}

fn list_ssh_keys(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    Ok(Answer::json(&world.ssh_keys.values().filter(|key| key.user == user).map(ssh_key).collect()))
}

fn create_ssh_key(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let key = call.form.filled("key").ok_or_else(|| Refusal::field("key", "This field is required."))?.trim().to_owned();
    if !is_public_key(&key) {
        return Err(Refusal::field("key", "Invalid SSH public key: Invalid value."));
    }
    if world.ssh_keys.values().any(|known| known.user == user && known.key == key) {
        return Err(Refusal::field("key", "This key has already been added for this user."));
    }
    let id = world.ssh_keys.add(None, |id| SshKey { id, user, key: key.clone(), source: None });
    Ok(Answer::json_with(201, &json!({"id": id, "key": key})))
}

/// A key type, base64 that begins with the same type, and perhaps a remark.
fn is_public_key(text: &str) -> bool {
    use base64::Engine as _;
    let mut parts = text.split_whitespace();
    let (Some(kind), Some(data)) = (parts.next(), parts.next()) else { return false };
    base64::engine::general_purpose::STANDARD.decode(data).is_ok_and(|bytes| bytes.get(4..4 + kind.len()) == Some(kind.as_bytes()))
}

fn find(world: &World, call: &Call) -> Result<Id<SshKey>, Refusal> {
    let user = call.caller()?;
    let found =
        world.ssh_keys.values().find(|key| key.id.to_string() == call.argument(0)).ok_or_else(|| Refusal::no_match(world, "SSHKey"))?;
    if found.user == user { Ok(found.id) } else { Err(Refusal::text(403, "Can't delete a key you don't own.")) }
}

fn read_ssh_key(world: &mut World, call: &Call) -> Reply {
    let id = find(world, call)?;
    Ok(Answer::json(&world.ssh_keys.get(id).map_or(Value::Null, ssh_key)))
}

fn delete_ssh_key(world: &mut World, call: &Call) -> Reply {
    let id = find(world, call)?;
    world.ssh_keys.remove(id);
    Ok(Answer::deleted())
}
