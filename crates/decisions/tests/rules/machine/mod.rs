//! The rules about machines, as tables.

mod bring_up;
mod end;
pub mod facts;
mod images;
mod in_use;
mod left_nodes;
mod networks;
mod ownership;
mod pause;
mod pooled;
mod slow;
mod table;
mod taken_over;
mod told;
mod whose;
mod wishes;
