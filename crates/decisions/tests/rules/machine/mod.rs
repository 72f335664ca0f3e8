//! The rules about machines, as tables.

pub mod facts;
mod life;
mod networks;
mod ownership;
mod table;
mod wishes;
