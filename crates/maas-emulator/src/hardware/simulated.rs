//! Hardware that always works and takes a time drawn from the seed; what goes wrong comes from [`crate::faults`].

use std::time::Duration;

use super::{Hardware, Order, Outcome, Purpose, Work};
use crate::random::Random;
use crate::timings::Timings;

/// Machines that exist only as times.
#[derive(Debug, Clone, Copy, Default)]
pub struct Simulated;

impl Hardware for Simulated {
    fn perform(&self, order: &Order, random: &mut Random, timings: &Timings) -> Vec<(Duration, Outcome)> {
        match &order.work {
            Work::PowerOff => vec![(timings.power_off.draw(random), Outcome::PoweredOff)],
            Work::Forget { .. } => Vec::new(),
            Work::PowerOn(purpose) => {
                let on = timings.power_on.draw(random);
                let work = match purpose {
                    Purpose::Commission => timings.commission,
                    Purpose::Test => timings.test,
                    Purpose::Deploy(_) => timings.deploy,
                    Purpose::Erase => timings.erase,
                    Purpose::Rescue => timings.rescue,
                    Purpose::Local => return vec![(on, Outcome::PoweredOn)],
                };
                vec![(on, Outcome::PoweredOn), (on + work.draw(random), Outcome::Finished)]
            }
        }
    }
}
