//! One call as handlers see it: who, which operation, which fields.

use bytes::Bytes;
use http::Method;
use serde::{Deserialize, Serialize};

use super::answer::Refusal;
use super::form::{File, Form};
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::people::User;

/// One call.
#[derive(Debug, Clone)]
pub struct Call {
    /// The HTTP method.
    pub method: Method,
    /// The path below `/MAAS/api/2.0/`.
    pub path: String,
    /// What stands in the places of the path pattern.
    pub arguments: Vec<String>,
    /// The operation.
    pub operation: Option<String>,
    /// Fields of the query.
    pub query: Form,
    /// Fields of the body.
    pub form: Form,
    /// Files of the body.
    pub files: Vec<File>,
    /// The body as it came, for uploads.
    pub body: Bytes,
    /// The body was JSON, which most operations break on.
    pub is_json: bool,
    /// Who calls; nobody when it is anonymous.
    pub user: Option<Id<User>>,
    /// The number of commits when it began; checks of uniqueness see no later ones, as in MAAS's database.
    pub began: u64,
}

/// A call kept for later.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SavedCall {
    /// The HTTP method.
    pub method: String,
    /// Path and query.
    pub uri: String,
    /// The content type.
    pub content_type: String,
    /// The body.
    pub body: Vec<u8>,
    /// Who called.
    pub user: Option<Id<User>>,
    /// The number of commits when it began; what was committed since, it does not see.
    #[serde(default = "the_latest")]
    pub began: u64,
}

fn the_latest() -> u64 {
    u64::MAX
}

impl Call {
    /// What stands in a place of the path.
    pub fn argument(&self, place: usize) -> &str {
        self.arguments.get(place).map_or("", String::as_str)
    }

    /// Takes out what says who calls, once that is known: operations do not know these fields.
    pub fn forget_credentials(&mut self) {
        for fields in [&mut self.query, &mut self.form] {
            fields.0.retain(|(name, _)| !name.starts_with("oauth_"));
        }
    }

    /// The caller; operations that anonymous callers reach do not ask.
    pub fn caller(&self) -> Result<Id<User>, Refusal> {
        self.user.ok_or_else(Refusal::unauthenticated)
    }

    /// The caller, who must be an administrator.
    pub fn admin(&self, world: &World) -> Result<Id<User>, Refusal> {
        let user = self.caller()?;
        if world.is_admin(user) { Ok(user) } else { Err(Refusal::admin_only()) }
    }

    /// What the path names, for an administrator. MAAS looks for it first: what is not there is missed by everybody, and what is there is
    /// refused to others without a word.
    pub fn administered<T>(&self, world: &World, find: impl FnOnce(&World, &Call) -> Result<T, Refusal>) -> Result<T, Refusal> {
        let user = self.caller()?;
        let found = find(world, self)?;
        if world.is_admin(user) { Ok(found) } else { Err(Refusal::forbidden()) }
    }

    /// The machine the path names, which the caller may see.
    pub fn viewed_machine(&self, world: &World) -> Result<Id<Machine>, Refusal> {
        self.machine(world, World::may_view)
    }

    /// The machine the path names, which the caller may use.
    pub fn edited_machine(&self, world: &World) -> Result<Id<Machine>, Refusal> {
        self.machine(world, World::may_edit)
    }

    /// The machine the path names, which the caller may change.
    pub fn administered_machine(&self, world: &World) -> Result<Id<Machine>, Refusal> {
        self.machine(world, World::may_administer)
    }

    /// The machine the path names, if `may` allows it.
    pub fn machine(&self, world: &World, may: impl Fn(&World, Id<User>, &Machine) -> bool) -> Result<Id<Machine>, Refusal> {
        self.machine_called("Machine", world, may)
    }

    /// The same where MAAS looks among all its nodes and says so.
    pub fn node(&self, world: &World, may: impl Fn(&World, Id<User>, &Machine) -> bool) -> Result<Id<Machine>, Refusal> {
        self.machine_called("Node", world, may)
    }

    fn machine_called(&self, model: &str, world: &World, may: impl Fn(&World, Id<User>, &Machine) -> bool) -> Result<Id<Machine>, Refusal> {
        let user = self.caller()?;
        let id = world.machine_id(self.argument(0)).ok_or_else(|| Refusal::no_match(world, model))?;
        match world.machines.get(id) {
            Some(machine) if may(world, user, machine) => Ok(id),
            _ => Err(Refusal::forbidden()),
        }
    }

    /// A yes or no as most operations read it.
    pub fn flag(&self, key: &str) -> Result<Option<bool>, Refusal> {
        yes_or_no(&self.form, key)
    }

    /// The same of the query, where lists and deletions have it.
    pub fn query_flag(&self, key: &str) -> Result<Option<bool>, Refusal> {
        yes_or_no(&self.query, key)
    }

    /// A whole number as most operations read it.
    pub fn integer(&self, key: &str) -> Result<Option<u32>, Refusal> {
        let Some(text) = self.form.filled(key) else { return Ok(None) };
        text.trim().parse().map(Some).map_err(|_| Refusal::text(400, format!("Invalid {key}: Please enter an integer value")))
    }

    /// A yes or no as Django forms read it: everything but a spelled-out no is yes.
    pub fn loose_flag(&self, key: &str) -> bool {
        self.form.get(key).is_some_and(|text| !matches!(text.trim().to_ascii_lowercase().as_str(), "" | "false" | "0"))
    }
}

fn yes_or_no(fields: &Form, key: &str) -> Result<Option<bool>, Refusal> {
    match fields.get(key) {
        None | Some("") => Ok(None),
        Some(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "t" | "yes" | "y" | "on" | "1" => Ok(Some(true)),
            "false" | "f" | "no" | "n" | "off" | "0" => Ok(Some(false)),
            _ => Err(Refusal::text(400, format!("Invalid {key}: Value should be 'true' or 'false'"))),
        },
    }
}
