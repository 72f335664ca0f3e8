//! Other words in the same order: what MAAS sorts by name stays sorted when names are others. Used by `--rename`.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;

/// Other words for `words`. Each keeps its form: the first letter, what is no letter, and case. Two of them, or one of them and one of
/// the `fixed`, stand to each other as their old words did, since words that begin alike go on beginning alike, and where they part the
/// order of the letters stays. None is among the `taken`, and new ones are added there.
pub fn others_in_order(
    words: &BTreeSet<String>,
    fixed: &BTreeSet<String>,
    random: &mut Rng,
    taken: &mut BTreeSet<String>,
) -> BTreeMap<String, String> {
    // A word with a letter or two has hardly any others like it.
    let changeable = |word: &str| word.chars().skip(1).filter(char::is_ascii_alphabetic).count() >= 2;
    let (mut words, short): (BTreeSet<String>, BTreeSet<String>) = words.iter().cloned().partition(|word| changeable(word));
    let mut fixed: BTreeSet<String> = fixed.union(&short).cloned().collect();
    words.retain(|word| !fixed.contains(word));
    loop {
        let mut stuck = BTreeSet::new();
        for _ in 0..100 {
            let others = attempt(&words, &fixed, random);
            let stale = others.iter().filter(|(word, other)| word == other || taken.contains(*other)).map(|(word, _)| word.clone());
            stuck = stale.collect();
            if stuck.is_empty() {
                taken.extend(others.values().cloned());
                return others;
            }
        }
        // Between words that stay there may be no room: then these stay as well. Each round has fewer words, so it ends.
        words.retain(|word| !stuck.contains(word));
        fixed.append(&mut stuck);
    }
}

fn attempt(words: &BTreeSet<String>, fixed: &BTreeSet<String>, random: &mut Rng) -> BTreeMap<String, String> {
    // What may follow each beginning, and whether it has to stay.
    let mut following: BTreeMap<&str, BTreeMap<char, bool>> = BTreeMap::new();
    for (word, stays) in words.iter().map(|word| (word, false)).chain(fixed.iter().map(|word| (word, true))) {
        for (index, letter) in word.char_indices() {
            *following.entry(&word[..index]).or_default().entry(letter).or_default() |= stays || index == 0;
        }
    }
    let changed: BTreeMap<&str, BTreeMap<char, char>> =
        following.into_iter().map(|(beginning, letters)| (beginning, other_letters(&letters, random))).collect();
    let other = |word: &String| {
        word.char_indices().map(|(index, letter)| changed[&word[..index]].get(&letter).copied().unwrap_or(letter)).collect()
    };
    words.iter().map(|word| (word.clone(), other(word))).collect()
}

/// Other letters in the same order, each between the next ones that stay.
fn other_letters(letters: &BTreeMap<char, bool>, random: &mut Rng) -> BTreeMap<char, char> {
    let mut changed = BTreeMap::new();
    for alphabet in ['a'..='z', 'A'..='Z'] {
        let alphabet: Vec<char> = alphabet.collect();
        for between in alphabet.split(|letter| letters.get(letter) == Some(&true)) {
            let old: Vec<char> = between.iter().copied().filter(|letter| letters.contains_key(letter)).collect();
            let mut new = random.choose_multiple(between.iter().copied(), old.len());
            new.sort_unstable();
            changed.extend(old.into_iter().zip(new));
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(words: &[&str]) -> BTreeSet<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn other_words_stand_in_the_order_of_the_old_ones_and_of_those_that_stay() {
        let words = set(&["admin", "alan", "alice", "alicia", "bob", "bobby", "carla", "charlie", "carl-x2"]);
        let fixed = set(&["MAAS", "alfred", "bobb", "cecil"]);
        for seed in 1..=200 {
            let mut taken = &words | &fixed;
            let others = others_in_order(&words, &fixed, &mut Rng::with_seed(seed), &mut taken);
            let everybody = &words | &fixed;
            let renamed: Vec<&String> = everybody.iter().map(|word| others.get(word).unwrap_or(word)).collect();
            assert!(renamed.windows(2).all(|pair| pair[0] < pair[1]), "{seed}: {renamed:?}");
            assert!(others["carl-x2"].ends_with('2') && others["carl-x2"].chars().nth(4) == Some('-'), "{others:?}");
            assert!(others.iter().all(|(word, other)| word != other && word.len() == other.len()), "{seed}: {others:?}");
        }
    }

    #[test]
    fn a_word_without_room_between_those_that_stay_stays_too() {
        let (words, fixed) = (set(&["alice2", "ab", "bernard"]), set(&["alice"]));
        let mut taken = &words | &fixed;
        let others = others_in_order(&words, &fixed, &mut Rng::with_seed(1), &mut taken);
        assert_eq!(others.keys().collect::<Vec<_>>(), ["bernard"]);
    }
}
