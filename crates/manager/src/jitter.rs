//! The only randomness of the manager: a seed, and numbers drawn from it by name.
//!
//! A draw is a pure function of seed, purpose and number, not the next value of a shared stream. So the delay of one object does not
//! depend on what other objects did before it, and a run with the same seed is the same run.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// Seeded randomness for delays and identities.
#[derive(Debug, Clone, Copy)]
pub struct Jitter {
    seed: u64,
}

impl Jitter {
    /// Randomness that repeats itself for the same seed.
    pub const fn seeded(seed: u64) -> Self {
        Self { seed }
    }

    /// Randomness that differs between processes; the standard library takes its keys from the operating system.
    pub fn from_system() -> Self {
        Self { seed: RandomState::new().hash_one("jitter") }
    }

    /// The number drawn for this purpose at this count.
    pub fn draw(&self, purpose: &str, number: u64) -> u64 {
        let named = purpose.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        mix(mix(self.seed ^ named).wrapping_add(number))
    }

    /// `duration` moved by at most `permille` thousandths up or down.
    pub fn spread(&self, duration: Duration, permille: u32, purpose: &str, number: u64) -> Duration {
        let permille = permille.min(1000);
        let width = u64::from(permille) * 2 + 1;
        let shift = u32::try_from(self.draw(purpose, number) % width).unwrap_or_default();
        duration.saturating_mul(1000 - permille + shift) / 1000
    }
}

/// The finalizer of splitmix64: neighbouring inputs give unrelated outputs.
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_and_another_seed_does_not() {
        let (one, same, other) = (Jitter::seeded(1), Jitter::seeded(1), Jitter::seeded(2));
        assert_eq!(one.draw("a", 7), same.draw("a", 7));
        assert_ne!(one.draw("a", 7), other.draw("a", 7));
        assert_ne!(one.draw("a", 7), one.draw("b", 7));
        assert_ne!(one.draw("a", 7), one.draw("a", 8));
    }

    #[test]
    fn a_spread_stays_within_its_share_and_uses_both_sides() {
        let jitter = Jitter::seeded(3);
        let drawn: Vec<_> = (0..200).map(|number| jitter.spread(Duration::from_secs(10), 200, "x", number)).collect();
        assert!(drawn.iter().all(|delay| (Duration::from_secs(8)..=Duration::from_secs(12)).contains(delay)), "{drawn:?}");
        assert!(drawn.iter().any(|delay| *delay < Duration::from_secs(9)) && drawn.iter().any(|delay| *delay > Duration::from_secs(11)));
    }
}
