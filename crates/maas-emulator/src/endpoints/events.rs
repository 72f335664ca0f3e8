//! `events/?op=query`: newest first, in pages by id.

use serde_json::{Value, json};

use super::machines::is_mac;
use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::http::route::{Endpoint, Operation};
use crate::world::World;
use crate::world::event::{Event, Level};
use crate::world::machine::Machine;

pub const ENDPOINTS: &[Endpoint] = &[Endpoint::new("events/", &[Operation::get_op("query", query)])];

const PAGE: usize = 100;
const LARGEST_PAGE: usize = 1000;
/// What the addresses of other pages say besides where they begin.
const KEPT: [&str; 10] = ["agent_name", "domain", "hostname", "id", "level", "limit", "mac_address", "op", "zone", "owner"];

fn query(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let fields = &call.query;
    let number = |key: &str| -> Result<Option<i64>, Refusal> {
        fields
            .filled(key)
            .map(|text| text.parse().map_err(|_| Refusal::text(400, format!("Invalid {key}: Please enter an integer value"))))
            .transpose()
    };
    let limit = match fields.filled("limit") {
        None => PAGE,
        Some(text) => {
            let limit: i64 = text.parse().map_err(|_| Refusal::text(400, "Invalid limit: Please enter an integer value"))?;
            usize::try_from(limit.max(1)).unwrap_or(PAGE)
        }
    };
    if limit > LARGEST_PAGE {
        return Err(Refusal::text(400, format!("Requested number of events {limit} is greater than limit: {LARGEST_PAGE}")));
    }
    let level = match fields.filled("level") {
        None => Level::Info,
        Some(name) => Level::named(name).ok_or_else(|| Refusal::text(400, format!("Unrecognised log level: {name}")))?,
    };
    let (before, after) = (number("before")?, number("after")?);
    if before.is_some() && after.is_some() {
        return Err(Refusal::text(400, "There is undetermined behaviour when both `after` and `before` are specified."));
    }
    let filter = Filter::read(call)?;
    let wanted = |event: &&Event| {
        let important =
            if level == Level::Audit { event.level == Level::Audit } else { event.level >= level && event.level != Level::Audit };
        important
            && filter.caused_by(event)
            && world.machines.get(event.machine).is_some_and(|machine| world.may_view(user, machine) && filter.matches(world, machine))
    };
    // Following reads the oldest events after the cursor; everything else the newest.
    let mut page: Vec<&Event> = match (before, after) {
        (_, Some(after)) => world.events.from(after.saturating_add(1)).filter(wanted).take(limit).collect(),
        (Some(before), None) => world.events.before(before).rev().filter(wanted).take(limit).collect(),
        (None, None) => world.events.values().rev().filter(wanted).take(limit).collect(),
    };
    page.sort_by_key(|event| std::cmp::Reverse(event.id));
    let address = |key: &str, id: Option<i64>| {
        let kept = fields.0.iter().filter(|(name, _)| KEPT.contains(&name.as_str())).map(|(name, value)| (name.as_str(), value.as_str()));
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(kept);
        if let Some(id) = id {
            query.append_pair(key, &id.to_string());
        }
        json!(format!("/MAAS/api/2.0/events/?{}", query.finish()))
    };
    let number = |event: &&Event| i64::from(event.id.0);
    // An empty page leads to the other side of where it begins, and in its own direction to where nothing says where to begin.
    let newest = page.first().map(number).or(before.map(|before| before.saturating_sub(1)));
    let oldest = page.last().map(number).or(after.map(|after| after.saturating_add(1)));
    let events: Vec<Value> = page.iter().map(|event| render(world, event)).collect();
    Ok(Answer::json(&json!({
        "count": events.len(),
        "events": events,
        "next_uri": address("after", newest),
        "prev_uri": oldest.map_or(Value::Null, |oldest| address("before", Some(oldest))),
    })))
}

fn render(world: &World, event: &Event) -> Value {
    let machine = world.machines.get(event.machine);
    json!({
        "id": event.id,
        "level": event.level.name(),
        "created": event.created.strftime("%a, %d %b. %Y %H:%M:%S").to_string(),
        "type": event.kind,
        "description": event.description,
        "node": machine.map(|machine| machine.system_id.as_str()),
        "hostname": machine.map(|machine| machine.hostname.as_str()),
        "username": event.username.as_deref().unwrap_or("unknown"),
    })
}

/// Which machines' events are wanted; what is absent asks for nothing.
struct Filter {
    system_ids: Vec<String>,
    hostnames: Vec<String>,
    macs: Vec<String>,
    zones: Vec<String>,
    domains: Vec<String>,
    owners: Vec<String>,
    agent_names: Vec<String>,
}

impl Filter {
    /// Reads it as lists of nodes are filtered here, which is not as the list of machines is: nobody misses a zone.
    fn read(call: &Call) -> Result<Self, Refusal> {
        let all = |key: &str| -> Vec<String> { call.query.all(key).filter(|value| !value.is_empty()).map(str::to_owned).collect() };
        let (macs, bad): (Vec<String>, Vec<String>) = all("mac_address").into_iter().partition(|mac| is_mac(mac));
        if !bad.is_empty() {
            return Err(Refusal::text(400, format!("Invalid MAC address(es): {}", bad.join(", "))));
        }
        Ok(Filter {
            system_ids: all("id"),
            hostnames: all("hostname"),
            macs: macs.iter().map(|mac| mac.to_ascii_lowercase()).collect(),
            zones: all("zone"),
            domains: all("domain"),
            owners: all("owner"),
            agent_names: all("agent_name"),
        })
    }

    /// What is called the owner is whoever caused the event.
    fn caused_by(&self, event: &Event) -> bool {
        self.owners.is_empty() || event.username.as_ref().is_some_and(|name| self.owners.contains(name))
    }

    fn matches(&self, world: &World, machine: &Machine) -> bool {
        let any =
            |list: &[String], value: Option<&str>| list.is_empty() || value.is_some_and(|value| list.iter().any(|wanted| wanted == value));
        any(&self.system_ids, Some(&machine.system_id))
            && any(&self.hostnames, Some(&machine.hostname))
            && any(&self.zones, world.zones.get(machine.zone).map(|zone| zone.name.as_str()))
            && any(&self.domains, world.domains.get(machine.domain).map(|domain| domain.name.as_str()))
            && any(&self.agent_names, Some(&machine.agent_name))
            && (self.macs.is_empty()
                || machine.interfaces.iter().filter_map(|id| world.interfaces.get(*id)).any(|interface| self.macs.contains(&interface.mac)))
    }
}
