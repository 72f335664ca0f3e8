//! The rules about machines, as tables.

mod bring_up;
mod end;
pub mod facts;
mod images;
mod in_use;
mod networks;
mod ownership;
mod pause;
mod slow;
mod table;
mod taken_over;
mod whose;
mod wishes;
