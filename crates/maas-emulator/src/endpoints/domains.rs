//! `domains/`: the domains MAAS serves.

use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::http::route::{Endpoint, Operation};
use crate::render;
use crate::world::World;
use crate::world::dns::Domain;
use crate::world::id::Id;

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint::new("domains/", &[Operation::get(list_domains), Operation::post(create_domain)]),
    Endpoint::new("domains/{}/", &[Operation::get(read_domain), Operation::put(update_domain), Operation::delete(delete_domain)]),
];

/// The domain with this id or name.
pub fn find_domain(world: &World, wanted: &str) -> Option<Id<Domain>> {
    world.domains.values().find(|domain| domain.id.to_string() == wanted || domain.name == wanted).map(|domain| domain.id)
}

/// The longest time to live DNS knows.
const LONGEST: i64 = i32::MAX as i64;

/// A time to live of a form, in seconds.
pub fn ttl(call: &Call, key: &str) -> Result<Option<u32>, Refusal> {
    let Some(text) = call.form.filled(key) else { return Ok(None) };
    // What does not fit a number here is a whole number for MAAS all the same.
    let digits = text.trim().strip_prefix('-').unwrap_or(text.trim());
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refusal::field(key, "Enter a whole number."));
    }
    let too_large = if text.trim().starts_with('-') { i64::MIN } else { i64::MAX };
    match text.trim().parse::<i64>().unwrap_or(too_large) {
        ..0 => Err(Refusal::field(key, "Ensure this value is greater than or equal to 0.")),
        seconds if seconds > LONGEST => Err(Refusal::field(key, format!("Ensure this value is less than or equal to {LONGEST}."))),
        seconds => Ok(u32::try_from(seconds).ok()),
    }
}

fn domain_of(world: &World, call: &Call) -> Result<Id<Domain>, Refusal> {
    find_domain(world, call.argument(0)).ok_or_else(|| Refusal::no_match(world, "Domain"))
}

fn answer_domain(world: &World, id: Id<Domain>) -> Reply {
    world.domains.get(id).map(|domain| Answer::json(&render::domain(world, domain))).ok_or_else(|| Refusal::no_match(world, "Domain"))
}

fn list_domains(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    Ok(Answer::json(&world.domains.values().map(|domain| render::domain(world, domain)).collect()))
}

fn read_domain(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let id = domain_of(world, call)?;
    answer_domain(world, id)
}

/// What is wrong with a domain's name, in MAAS's words.
pub fn bad_domain(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let fine = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    if !name.split('.').all(fine) {
        problems.push(format!("Invalid domain name: {name}."));
    }
    for label in name.split('.').filter(|label| label.starts_with('-') || label.ends_with('-')) {
        problems.push(format!("Label cannot start or end with hyphen: '{label}'."));
    }
    problems
}

fn check_name(world: &World, name: &str, own: Option<Id<Domain>>) -> Result<(), Refusal> {
    let problems = bad_domain(name);
    if !problems.is_empty() {
        return Err(Refusal::fields([("name".to_owned(), problems)]));
    }
    if world.domains.values().any(|domain| domain.name == name && Some(domain.id) != own) {
        return Err(Refusal::field("name", "Domain with this Name already exists."));
    }
    Ok(())
}

fn create_domain(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let name = call.form.filled("name").ok_or_else(|| Refusal::field("name", "This field is required."))?.to_owned();
    check_name(world, &name, None)?;
    let (authoritative, ttl) = (call.flag("authoritative")?.unwrap_or(true), ttl(call, "ttl")?);
    let id = world.domains.add(None, |id| Domain { id, name, authoritative, ttl, is_default: false });
    world.dns_changes += 1;
    answer_domain(world, id)
}

fn update_domain(world: &mut World, call: &Call) -> Reply {
    let id = call.administered(world, domain_of)?;
    let (ttl, authoritative) = (ttl(call, "ttl")?, call.flag("authoritative")?);
    if let Some(name) = call.form.filled("name") {
        check_name(world, name, Some(id))?;
    }
    if let Some(domain) = world.domains.get_mut(id) {
        if let Some(name) = call.form.filled("name") {
            name.clone_into(&mut domain.name);
        }
        domain.ttl = ttl.or(domain.ttl);
        domain.authoritative = authoritative.unwrap_or(domain.authoritative);
    }
    world.dns_changes += 1;
    answer_domain(world, id)
}

/// What is in a domain keeps it. MAAS says so in the words of its database: a set, which Python shows by number while it is small.
fn refuse_in_use(world: &World, id: Id<Domain>) -> Result<(), Refusal> {
    let names: Vec<String> =
        world.names.values().filter(|name| name.domain == id).map(|name| format!("<DNSResource: name={}>", name.name)).collect();
    let nodes = world.machines.values().filter(|node| node.domain == id);
    let nodes: Vec<String> = nodes.map(|node| format!("<Node: {} ({})>", node.system_id, world.fqdn(node))).collect();
    let keys = [("'DNSResource.domain'", &names), ("'Node.domain'", &nodes)];
    let keys: Vec<&str> = keys.into_iter().filter(|(_, rows)| !rows.is_empty()).map(|(key, _)| key).collect();
    if keys.is_empty() {
        return Ok(());
    }
    let words = format!(
        "(\"Cannot delete some instances of model 'Domain' because they are referenced through protected foreign keys: {}.\", {{{}}})",
        keys.join(", "),
        [names, nodes].concat().join(", ")
    );
    Err(Refusal::text(500, words))
}

fn delete_domain(world: &mut World, call: &Call) -> Reply {
    let id = call.administered(world, domain_of)?;
    if world.domains.get(id).is_some_and(|domain| domain.is_default) {
        return Err(Refusal::text(400, "This domain is the default domain, it cannot be deleted."));
    }
    refuse_in_use(world, id)?;
    world.domains.remove(id);
    world.dns_changes += 1;
    Ok(Answer::deleted())
}
