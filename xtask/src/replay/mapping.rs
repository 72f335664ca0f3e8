//! Values that MAAS made up, paired one to one with those the emulator made up. The comparison fills it, requests are translated by
//! it. What was there from the beginning is fixed: it must be itself.

use std::collections::{BTreeMap, BTreeSet};

/// What a made-up value names. Numbers of different kinds have nothing to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    BlockDevice,
    Bmc,
    DnsRecord,
    DnsResource,
    Domain,
    Event,
    Fabric,
    Hostname,
    Image,
    Interface,
    IpRange,
    Link,
    Mac,
    /// The number of a node in MAAS's database; its system id is `Machine`.
    Node,
    Machine,
    Partition,
    Pool,
    ReservedIp,
    ScriptSet,
    Space,
    SshKey,
    StorageSet,
    Subnet,
    Token,
    Upload,
    Uuid,
    VirtualMachine,
    Vlan,
    VmCluster,
    VmHost,
    Zone,
}

impl Kind {
    /// Whether values of this kind are words that cannot be mistaken inside a sentence.
    fn is_word(self) -> bool {
        matches!(self, Self::Hostname | Self::Mac | Self::Machine | Self::Token | Self::Uuid)
    }
}

type Named = (Kind, String);

/// The pairs learnt so far.
#[derive(Clone, Debug, Default)]
pub struct Mapping {
    theirs_to_ours: BTreeMap<Named, String>,
    ours_to_theirs: BTreeMap<Named, String>,
    fixed: BTreeSet<Named>,
    /// Pairs in the order they were learnt, so that some can be forgotten again.
    learnt: Vec<(Kind, String, String)>,
    /// Pairs of words that are not the same, for sentences.
    words: BTreeMap<String, String>,
}

impl Mapping {
    /// From now on this value stands only for itself.
    pub fn fix(&mut self, kind: Kind, value: impl Into<String>) {
        self.fixed.insert((kind, value.into()));
    }

    pub fn is_fixed(&self, kind: Kind, value: &str) -> bool {
        self.fixed.contains(&(kind, value.to_owned()))
    }

    /// Whether `theirs` and `ours` may be the same thing; remembers them as a pair when nothing speaks against it.
    pub fn agree(&mut self, kind: Kind, theirs: &str, ours: &str) -> bool {
        let (their_key, our_key) = ((kind, theirs.to_owned()), (kind, ours.to_owned()));
        if self.fixed.contains(&their_key) || self.fixed.contains(&our_key) {
            return theirs == ours;
        }
        if let Some(known) = self.theirs_to_ours.get(&their_key) {
            return known == ours;
        }
        if self.ours_to_theirs.contains_key(&our_key) {
            return false;
        }
        self.theirs_to_ours.insert(their_key, ours.to_owned());
        self.ours_to_theirs.insert(our_key, theirs.to_owned());
        self.learnt.push((kind, theirs.to_owned(), ours.to_owned()));
        if kind.is_word() && theirs != ours {
            self.words.insert(theirs.to_owned(), ours.to_owned());
        }
        true
    }

    /// A place to go back to.
    pub fn mark(&self) -> usize {
        self.learnt.len()
    }

    /// Forgets what was learnt after `mark`.
    pub fn forget_since(&mut self, mark: usize) {
        for (kind, theirs, ours) in self.learnt.drain(mark..) {
            self.words.remove(&theirs);
            self.theirs_to_ours.remove(&(kind, theirs));
            self.ours_to_theirs.remove(&(kind, ours));
        }
    }

    /// What a recorded value is called here; itself when it was never seen.
    pub fn translate(&self, kind: Kind, theirs: &str) -> String {
        self.theirs_to_ours.get(&(kind, theirs.to_owned())).cloned().unwrap_or_else(|| theirs.to_owned())
    }

    /// What a recorded number is called here. Numbers that no answer showed keep their distance to the one shown before them,
    /// because numbers are given in order.
    pub fn translate_between(&self, kind: Kind, theirs: &str) -> String {
        let Ok(number) = theirs.parse::<u64>() else { return theirs.to_owned() };
        let shown = self.theirs_to_ours.iter().filter(|((other, _), _)| *other == kind);
        let numbers = shown.filter_map(|((_, theirs), ours)| Some((theirs.parse::<u64>().ok()?, ours.parse::<u64>().ok()?)));
        let before = numbers.filter(|(theirs, _)| *theirs <= number).max();
        before.map_or_else(|| theirs.to_owned(), |(theirs, ours)| (ours + (number - theirs)).to_string())
    }

    /// A recorded sentence with the names that are used here.
    pub fn translate_text(&self, text: &str) -> String {
        let translated = replace_words(text, |word| self.words.get(word).cloned());
        self.translate_vm_hosts(&translated)
    }

    /// MAAS names VM hosts by number in its sentences.
    fn translate_vm_hosts(&self, text: &str) -> String {
        let Some((before, after)) = text.split_once("Pod ") else { return text.to_owned() };
        let digits = after.len() - after.trim_start_matches(|character: char| character.is_ascii_digit()).len();
        format!("{before}Pod {}{}", self.translate(Kind::VmHost, &after[..digits]), &after[digits..])
    }
}

/// Replaces whole words: runs of letters and digits, first with the hyphens and colons between them, then without.
pub fn replace_words(text: &str, replacement: impl Fn(&str) -> Option<String>) -> String {
    let mut result = String::with_capacity(text.len());
    let joined = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | ':');
    for run in runs(text, joined) {
        let core = run.trim_matches(['-', ':']);
        match (core.is_empty(), replacement(core)) {
            (false, Some(word)) => result.push_str(&run.replacen(core, &word, 1)),
            _ => {
                for part in runs(run, |character| character.is_ascii_alphanumeric()) {
                    result.push_str(replacement(part).as_deref().unwrap_or(part));
                }
            }
        }
    }
    result
}

/// Replaces whole labels: runs of letters, digits, hyphens and underscores. Parts of them are not looked at, which may be words of the API.
pub fn replace_labels(text: &str, replacement: impl Fn(&str) -> Option<String>) -> String {
    let joined = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
    runs(text, joined).map(|run| replacement(run).unwrap_or_else(|| run.to_owned())).collect()
}

/// The text cut wherever characters that belong meet those that do not.
fn runs(text: &str, belongs: impl Fn(char) -> bool) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let inside = belongs(rest.chars().next()?);
        let end = rest.find(|character| belongs(character) != inside).unwrap_or(rest.len());
        let (run, tail) = rest.split_at(end);
        rest = tail;
        Some(run)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_one_to_one_and_kinds_apart() {
        let mut mapping = Mapping::default();
        assert!(mapping.agree(Kind::Zone, "4", "7"));
        assert!(mapping.agree(Kind::Zone, "4", "7"));
        assert!(!mapping.agree(Kind::Zone, "4", "8"));
        assert!(!mapping.agree(Kind::Zone, "5", "7"));
        assert!(mapping.agree(Kind::Pool, "4", "8"));
    }

    #[test]
    fn what_is_fixed_is_itself_on_both_sides() {
        let mut mapping = Mapping::default();
        mapping.fix(Kind::Subnet, "1");
        assert!(mapping.agree(Kind::Subnet, "1", "1"));
        assert!(!mapping.agree(Kind::Subnet, "1", "2"));
        assert!(!mapping.agree(Kind::Subnet, "3", "1"));
    }

    #[test]
    fn what_was_learnt_can_be_forgotten() {
        let mut mapping = Mapping::default();
        let mark = mapping.mark();
        assert!(mapping.agree(Kind::Zone, "4", "7"));
        mapping.forget_since(mark);
        assert!(mapping.agree(Kind::Zone, "5", "7"));
    }

    #[test]
    fn sentences_are_translated_word_by_word() {
        let mut mapping = Mapping::default();
        assert!(mapping.agree(Kind::Machine, "abc123", "xyz789"));
        assert!(mapping.agree(Kind::Machine, "xyz789", "abc123"));
        assert!(mapping.agree(Kind::VmHost, "13", "4"));
        assert_eq!(mapping.translate_text("abc123, xyz789 and abc1234"), "xyz789, abc123 and abc1234");
        assert_eq!(mapping.translate_text("Failed: Pod 13: gone"), "Failed: Pod 4: gone");
    }

    #[test]
    fn numbers_that_were_never_shown_keep_their_distance() {
        let mut mapping = Mapping::default();
        assert!(mapping.agree(Kind::Event, "440", "420"));
        assert_eq!(mapping.translate_between(Kind::Event, "445"), "425");
        assert_eq!(mapping.translate_between(Kind::Event, "440"), "420");
        assert_eq!(mapping.translate_between(Kind::Event, "12"), "12");
    }
}
