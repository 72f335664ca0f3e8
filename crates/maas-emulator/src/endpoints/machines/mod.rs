//! `machines/`: the list, single machines, and everything that is done with them.

mod allocate;
mod change;
mod constraints;
mod create;
mod deploy;
mod exclusions;
mod interface_constraint;
mod list;
mod power;
mod release;
mod specifiers;
mod states;
mod storage_constraint;
mod storage_layout;
mod wiring_constraint;

use crate::http::answer::Answer;
use crate::http::route::{Endpoint, Operation};
use crate::render;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;

pub use change::{POWER_TYPES, bad_host_label};
pub use constraints::{Constraints, Problems, is_mac};
pub use interface_constraint::InterfaceConstraint;
pub use states::is_annotation_key;
pub use storage_constraint::StorageConstraint;

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint::open(
        "machines/",
        &[
            Operation::get(list::list),
            Operation::get_op("list_allocated", list::list_allocated),
            Operation::get_op("power_parameters", power::all_parameters),
            Operation::get_op("is_registered", list::is_registered).anonymous(),
            Operation::post(create::create).anonymous(),
            Operation::post_op("allocate", allocate::allocate),
            Operation::post_op("release", release::release_many),
            Operation::post_op("set_zone", change::set_zone),
            Operation::post_op("accept", create::accept),
            Operation::post_op("accept_all", create::accept_all),
        ],
    ),
    Endpoint::new(
        "machines/{}/",
        &[
            Operation::get(list::read),
            Operation::get_op("details", list::details),
            Operation::get_op("power_parameters", power::parameters),
            Operation::get_op("query_power_state", power::query),
            Operation::get_op("get_token", list::get_token),
            Operation::get_op("get_curtin_config", deploy::curtin_config),
            Operation::put(change::update),
            Operation::delete(change::delete),
            Operation::post_op("deploy", deploy::deploy),
            Operation::post_op("release", release::release),
            Operation::post_op("abort", states::abort),
            Operation::post_op("commission", states::commission),
            Operation::post_op("test", states::test),
            Operation::post_op("override_failed_testing", states::override_failed_testing),
            Operation::post_op("mark_broken", states::mark_broken),
            Operation::post_op("mark_fixed", states::mark_fixed),
            Operation::post_op("lock", states::lock),
            Operation::post_op("unlock", states::unlock),
            Operation::post_op("rescue_mode", states::rescue_mode),
            Operation::post_op("exit_rescue_mode", states::exit_rescue_mode),
            Operation::post_op("power_on", power::on),
            Operation::post_op("power_off", power::off),
            Operation::post_op("set_workload_annotations", states::set_workload_annotations),
            Operation::post_op("set_owner_data", states::set_workload_annotations),
            Operation::post_op("set_storage_layout", storage_layout::set),
            Operation::post_op("restore_default_configuration", storage_layout::restore),
            Operation::post_op("restore_storage_configuration", storage_layout::restore),
            Operation::post_op("restore_networking_configuration", storage_layout::restore),
        ],
    ),
];

/// A machine as an answer.
fn answer(world: &World, id: Id<Machine>) -> Answer {
    world.machines.get(id).map_or_else(|| Answer::json(&serde_json::Value::Null), |machine| Answer::json(&render::machine(world, machine)))
}
