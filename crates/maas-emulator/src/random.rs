//! Chance that comes out the same for the same seed: ids, names, secrets, times. `SplitMix64` is enough for names; nothing of it
//! protects anything. Only [`unguessable`] does, for keys of a MAAS whose machines really boot.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};

use serde::{Deserialize, Serialize};

/// A seeded source of numbers; part of the saved state, so a restart goes on where it stopped.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Random {
    state: u64,
}

/// The letters and digits MAAS makes system ids of.
const SYSTEM_ID_LETTERS: &[u8] = b"34678abcdefghkmnpqrstwxy";
const KEY_LETTERS: &[u8] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz";
const ADJECTIVES: &[&str] = &[
    "brave", "calm", "clever", "crisp", "eager", "fair", "fleet", "fond", "gentle", "glad", "grand", "keen", "kind", "light", "loyal",
    "merry", "mild", "neat", "noble", "proud", "quick", "quiet", "rapid", "ready", "sharp", "sleek", "smart", "solid", "sound", "swift",
    "vivid", "warm",
];
const ANIMALS: &[&str] = &[
    "adder", "badger", "bison", "crane", "crow", "deer", "eagle", "ferret", "finch", "fox", "goose", "hare", "heron", "hound", "ibex",
    "jay", "kite", "lark", "lynx", "mole", "moose", "newt", "otter", "owl", "pike", "raven", "robin", "seal", "stoat", "swan", "trout",
    "wren",
];

impl Random {
    /// A source for this seed.
    pub fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 for a limit of 0.
    pub fn below(&mut self, limit: usize) -> usize {
        let bits = self.bits();
        usize::try_from(bits % u64::try_from(limit.max(1)).unwrap_or(1)).unwrap_or(0)
    }

    /// A number from 0 up to, not including, 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    pub fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn word(&mut self, letters: &[u8], length: usize) -> String {
        (0..length).map(|_| char::from(letters[self.below(letters.len())])).collect()
    }

    /// A system id such as `k3gwtp`.
    pub fn system_id(&mut self) -> String {
        self.word(SYSTEM_ID_LETTERS, 6)
    }

    /// A part of an API key.
    pub fn key(&mut self, length: usize) -> String {
        self.word(KEY_LETTERS, length)
    }

    /// A host name such as `calm-otter`.
    pub fn hostname(&mut self) -> String {
        let adjective = ADJECTIVES[self.below(ADJECTIVES.len())];
        format!("{adjective}-{}", ANIMALS[self.below(ANIMALS.len())])
    }

    /// A UUID of version 4.
    pub fn uuid(&mut self) -> String {
        let (high, low) = (self.bits(), self.bits());
        let text = format!("{:016x}{:016x}", (high & !0xF000) | 0x4000, (low & !(0b11 << 62)) | (0b10 << 62));
        format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
    }

    /// A hardware address in the range of virtual machines.
    pub fn mac(&mut self) -> String {
        let bits = self.bits();
        format!("00:16:3e:{:02x}:{:02x}:{:02x}", bits & 0xFF, (bits >> 8) & 0xFF, (bits >> 16) & 0xFF)
    }
}

/// So many hexadecimal digits of the kernel's randomness.
pub fn unguessable(length: usize) -> io::Result<String> {
    let mut bytes = vec![0; length.div_ceil(2)];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let mut digits = bytes.iter().fold(String::new(), |mut digits, byte| {
        let _written = write!(digits, "{byte:02x}");
        digits
    });
    digits.truncate(length);
    Ok(digits)
}
