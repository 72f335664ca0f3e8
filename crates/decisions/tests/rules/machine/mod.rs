//! The rules about machines, as tables.

pub mod facts;
mod images;
mod joined;
mod life;
mod networks;
mod ownership;
mod slow;
mod table;
mod taken_over;
mod wishes;
