//! How long things take in the simulated hardware. A pair is the shortest and the longest time; the seed draws between them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::random::Random;

/// Times of the simulated hardware, in seconds in the fleet file.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timings {
    /// From power on to the first boot's report.
    pub deploy: Between,
    /// Commissioning, once powered on.
    pub commission: Between,
    /// Testing, once powered on.
    pub test: Between,
    /// Erasing the disks, once powered on.
    pub erase: Between,
    /// Entering or leaving rescue mode.
    pub rescue: Between,
    /// A BMC's switching on.
    pub power_on: Between,
    /// A BMC's switching off.
    pub power_off: Between,
    /// From a change to the zone files that show it.
    pub dns_publication: Between,
    /// How long a deployment may take until it has failed, whatever the hardware; by the setting `node_timeout`, in minutes, if absent.
    #[serde(deserialize_with = "time")]
    pub deploy_timeout: Option<f64>,
}

fn time<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let time = Option::<f64>::deserialize(deserializer)?;
    match time.filter(|seconds| !crate::faults::is_time(*seconds)) {
        None => Ok(time),
        Some(wrong) => Err(serde::de::Error::custom(format!("{wrong} is not a time in seconds, which is not below zero"))),
    }
}

impl Default for Timings {
    fn default() -> Self {
        Timings {
            deploy: Between(8.0, 20.0),
            commission: Between(5.0, 10.0),
            test: Between(5.0, 10.0),
            erase: Between(5.0, 10.0),
            rescue: Between(3.0, 6.0),
            power_on: Between(0.5, 1.5),
            power_off: Between(0.5, 1.5),
            dns_publication: Between(1.0, 3.0),
            deploy_timeout: None,
        }
    }
}

impl Timings {
    /// What stood in for hardware while MAAS was recorded: power switches at once, a deployment takes 3 s, the rest 2 s.
    pub fn recorded() -> Self {
        let (at_once, two, three) = (Between(0.0, 0.0), Between(2.0, 2.0), Between(3.0, 3.0));
        Timings {
            deploy: three,
            commission: two,
            test: two,
            erase: two,
            rescue: two,
            power_on: at_once,
            power_off: at_once,
            dns_publication: at_once,
            deploy_timeout: None,
        }
    }
}

/// The shortest and the longest time, in seconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "(f64, f64)")]
pub struct Between(pub f64, pub f64);

/// Two numbers that are no times.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("[{0}, {1}] is not the shortest and the longest time in seconds, the first of which is not below zero and not above the second")]
pub struct NoTimes(f64, f64);

impl TryFrom<(f64, f64)> for Between {
    type Error = NoTimes;

    fn try_from((shortest, longest): (f64, f64)) -> Result<Self, NoTimes> {
        // A number that is none fails both comparisons.
        if shortest >= 0.0 && longest >= shortest && longest.is_finite() {
            Ok(Between(shortest, longest))
        } else {
            Err(NoTimes(shortest, longest))
        }
    }
}

impl Between {
    /// A time between the two, drawn from the seed, in whole milliseconds.
    pub fn draw(self, random: &mut Random) -> Duration {
        let share = random.share();
        let seconds = self.0 + (self.1 - self.0).max(0.0) * share;
        Duration::try_from_secs_f64(seconds.clamp(0.0, 1e6))
            .map_or(Duration::ZERO, |time| Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(0)))
    }
}
