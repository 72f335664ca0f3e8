//! Keys for emulated MAAS whose machines really boot. What such a MAAS deploys runs as root, and every account of this computer reaches its
//! port, so nobody may know the key who was not told. Used by `lab up --fleet`, by `emulator --lab` and by the demo.

use anyhow::Context as _;
use maas_emulator::random::unguessable;

/// A key of an emulated MAAS that nobody can guess.
pub fn random() -> anyhow::Result<String> {
    let part = || unguessable(32).context("the kernel has no random numbers");
    Ok(format!("{}:{}:{}", part()?, part()?, part()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_another_one_and_has_three_parts() {
        let (one, another) = (random().unwrap(), random().unwrap());
        assert_ne!(one, another);
        assert_eq!(one.split(':').map(str::len).collect::<Vec<_>>(), [32, 32, 32]);
    }
}
