//! `--rename` for IPv4 addresses: one octet of each becomes another, the same one everywhere, so that whatever lay in a network still does
//! and networks keep their order. Every kind of address stays of its kind: private ones private, those of everybody those of everybody.
//!
//! What means the same everywhere stays as it is: loopback, `0.0.0.0/0`, link-local and multicast addresses, and networks so large that
//! they hold what is renamed apart. The recordings hold no IPv6 addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use fastrand::Rng;

/// Addresses that differ by the octet that is renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Block {
    /// 10/8.
    Ten,
    /// 172.16/12.
    Middle,
    /// 192.168/16.
    Small,
    /// What begins with this octet and is nobody's own.
    Public(u8),
}

/// Octets found in texts, by their block.
#[derive(Debug, Default)]
pub struct Found(BTreeMap<Block, BTreeSet<u8>>);

/// What octet becomes what.
#[derive(Debug, Default)]
pub struct Addresses(BTreeMap<Block, BTreeMap<u8, u8>>);

/// An address in a text, which may lack sense in its last octets.
struct Quad<'a> {
    octets: [&'a str; 4],
    /// The length of the network, where one follows.
    prefix: Option<u8>,
}

impl Block {
    fn of(octets: [u8; 3]) -> Option<Self> {
        match octets {
            [0 | 127 | 224.., ..] | [169, 254, _] => None,
            [10, ..] => Some(Self::Ten),
            [172, 16..32, _] => Some(Self::Middle),
            [192, 168, _] => Some(Self::Small),
            [first, ..] => Some(Self::Public(first)),
        }
    }

    /// Which octet is renamed.
    fn index(self) -> usize {
        if self == Self::Small { 2 } else { 1 }
    }

    /// What it may become.
    fn choice(self) -> Range<u8> {
        match self {
            // Of two digits each, as they are in recordings: what is written out keeps its length.
            Self::Ten | Self::Small => 10..100,
            Self::Middle => 16..32,
            // Neither 172.16/12 nor 192.168/16.
            Self::Public(172) => 32..255,
            Self::Public(_) => 1..168,
        }
    }
}

impl Quad<'_> {
    /// The block, and the octet of it that is renamed.
    fn place(&self) -> Option<(Block, u8)> {
        let number = |index: usize| self.octets[index].parse::<u8>().ok();
        let octets = [number(0)?, number(1)?, number(2)?];
        let block = Block::of(octets)?;
        let end = 8 * (block.index() + 1);
        let whole = self.prefix.is_none_or(|prefix| usize::from(prefix) >= end);
        whole.then_some((block, octets[block.index()]))
    }
}

impl Found {
    /// Looks through a text.
    pub fn text(&mut self, text: &str) {
        each(text, |quad| {
            if let Some((block, octet)) = quad.place() {
                self.0.entry(block).or_default().insert(octet);
            }
            None
        });
    }

    /// Chooses others for all that were found.
    pub fn others(&self, random: &mut Rng) -> Addresses {
        Addresses(self.0.iter().map(|(block, octets)| (*block, in_order(octets, block.choice(), random))).collect())
    }
}

impl Addresses {
    /// A text with the new addresses in it.
    pub fn text(&self, text: &str) -> String {
        each(text, |quad| {
            let (block, octet) = quad.place()?;
            let other = self.0.get(&block)?.get(&octet)?.to_string();
            let mut octets = quad.octets;
            octets[block.index()] = &other;
            Some(octets.join("."))
        })
    }
}

/// Goes through the addresses of a text and replaces them where told to.
fn each(text: &str, mut replacement: impl FnMut(&Quad<'_>) -> Option<String>) -> String {
    let belongs = |character: char| character.is_ascii_digit() || character == '.';
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find(|character: char| character.is_ascii_digit()) {
        let (before, from) = rest.split_at(begin);
        let (run, after) = from.split_at(from.find(|character| !belongs(character)).unwrap_or(from.len()));
        rest = after;
        result.push_str(before);
        // A sentence may end with an address.
        let bare = run.trim_end_matches('.');
        let octets: Vec<&str> = bare.split('.').collect();
        let word = before.ends_with(|character: char| character.is_alphanumeric() || character == '.');
        let other = <[&str; 4]>::try_from(octets).ok().filter(|_| !word).and_then(|octets| {
            let digits = after.strip_prefix('/').map(|length| length.split(|character: char| !character.is_ascii_digit()).next());
            replacement(&Quad { octets, prefix: digits.flatten().and_then(|digits| digits.parse().ok()) })
        });
        result.push_str(other.as_deref().unwrap_or(bare));
        result.push_str(&run[bare.len()..]);
    }
    result.push_str(rest);
    result
}

/// New numbers in the same order; the old ones where there are too few others.
fn in_order(octets: &BTreeSet<u8>, choice: Range<u8>, random: &mut Rng) -> BTreeMap<u8, u8> {
    let mut free: Vec<u8> = choice.filter(|octet| !octets.contains(octet)).collect();
    if free.len() < octets.len() {
        return BTreeMap::new();
    }
    random.shuffle(&mut free);
    free.truncate(octets.len());
    free.sort_unstable();
    octets.iter().copied().zip(free).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renamed(text: &str, seed: u64) -> String {
        let mut found = Found::default();
        found.text(text);
        found.others(&mut Rng::with_seed(seed)).text(text)
    }

    fn octets(text: &str) -> Vec<u8> {
        text.split(['.', '/']).filter_map(|octet| octet.parse().ok()).collect()
    }

    #[test]
    fn addresses_of_every_range_become_others_of_the_same_range() {
        for seed in 0..50 {
            for (text, fixed) in [("10.20.0.5", 1), ("172.31.0.7", 1), ("192.168.20.9", 2), ("192.0.2.10", 1), ("203.0.113.9", 1)] {
                let other = renamed(text, seed);
                assert_ne!(other, text);
                let (before, after) = (octets(text), octets(&other));
                assert_eq!((&before[..fixed], &before[fixed + 1..]), (&after[..fixed], &after[fixed + 1..]), "{text} became {other}");
                let block = |octets: &[u8]| Block::of([octets[0], octets[1], octets[2]]);
                assert_eq!(block(&before), block(&after), "{text} became {other}");
            }
        }
    }

    #[test]
    fn what_means_the_same_everywhere_stays() {
        let text =
            "0.0.0.0/0 127.0.0.1 169.254.1.1 224.0.0.1 255.255.255.0 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 3.7.3 v1.2.3.4 1.2.3.4.5";
        assert_eq!(renamed(text, 3), text);
    }

    #[test]
    fn an_address_lies_in_the_network_it_lay_in_wherever_it_is_written() {
        let text = "eth0:subnet_cidr=172.31.0.0/24, 172.31.0.9. (172.31.0.9) http://172.31.0.9:80/";
        let other = renamed(text, 7);
        let network = other.split(['=', '/']).nth(1).and_then(|network| network.strip_suffix(".0")).unwrap().to_owned();
        assert_ne!(network, "172.31.0");
        assert_eq!(other, text.replace("172.31.0", &network));
    }

    #[test]
    fn networks_keep_their_order() {
        let choice = Block::Ten.choice();
        let renamed = in_order(&BTreeSet::from([20, 30, 40, 60]), choice, &mut Rng::with_seed(3));
        assert!(renamed.values().is_sorted() && renamed.keys().all(|octet| !renamed.values().any(|other| other == octet)), "{renamed:?}");
    }
}
