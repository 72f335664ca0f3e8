//! `cargo xtask rows`: which test shows which row of Cluster API's contract and which scenario. Tests carry them in their names: `row_23_…`,
//! `rows_31_34_…`, `s19_s20_…`. A test called `planted_row_23_…` makes a mistake that exactly the check of row 23 has to find. A row that must
//! be shown and is not is a failure, and so are too few rows whose checks were seen to find a mistake.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};

use crate::{command::repository, output::say};

/// The rows of the contract that the provider for bare metal has to show.
const ROWS: [std::ops::RangeInclusive<u32>; 5] = [1..=4, 7..=44, 52..=52, 55..=55, 64..=70];
/// Its scenarios.
const SCENARIOS: [std::ops::RangeInclusive<u32>; 2] = [1..=24, 35..=39];

/// The rows the contract calls MUST, as far as a mistake was worth planting.
const MUST: [std::ops::RangeInclusive<u32>; 11] =
    [1..=4, 7..=16, 21..=26, 34..=36, 38..=38, 41..=44, 52..=52, 55..=55, 64..=64, 65..=65, 69..=69];
/// For so many of them at least a planted mistake is found.
const PLANTED_AT_LEAST: usize = 20;
/// How the names of tests begin that plant a mistake.
const PLANTED: &str = "planted_";

/// What a test shows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Shown {
    Row(u32),
    Scenario(u32),
}

/// Where tests are, by what they show.
type Tests = BTreeMap<Shown, Vec<String>>;

/// Prints the table; fails for what no test shows.
pub fn run() -> anyhow::Result<()> {
    let (mut tests, mut planted) = (Tests::new(), Tests::new());
    let repository = repository();
    for file in rust_files(&repository.join("crates"))? {
        let text = fs::read_to_string(&file).with_context(|| format!("could not read {}", file.display()))?;
        let file = file.strip_prefix(&repository).unwrap_or(&file);
        for name in tests_in(&text) {
            let (table, shown) = match name.strip_prefix(PLANTED) {
                Some(about) => (&mut planted, shown_by(about)),
                None => (&mut tests, shown_by(name)),
            };
            for shown in shown {
                table.entry(shown).or_default().push(format!("{name} ({})", file.display()));
            }
        }
    }
    let rows = ROWS.into_iter().flatten().map(Shown::Row);
    let scenarios = SCENARIOS.into_iter().flatten().map(Shown::Scenario);
    let mut missing = Vec::new();
    for wanted in rows.chain(scenarios) {
        let label = match &wanted {
            Shown::Row(number) => format!("row {number}"),
            Shown::Scenario(number) => format!("S{number:02}"),
        };
        for name in tests.get(&wanted).into_iter().flatten() {
            say(format!("{label:<8} {name}"));
        }
        for name in planted.get(&wanted).into_iter().flatten() {
            say(format!("{label:<8}   {name}"));
        }
        if !tests.contains_key(&wanted) {
            missing.push(label);
        }
    }
    let found = MUST.into_iter().flatten().filter(|row| planted.contains_key(&Shown::Row(*row))).count();
    say(format!("{found} MUST rows have a planted mistake that their checks find"));
    if !missing.is_empty() {
        bail!("no test shows {}", missing.join(", "));
    }
    if found < PLANTED_AT_LEAST {
        bail!("only {found} MUST rows have a planted mistake; {PLANTED_AT_LEAST} are wanted");
    }
    Ok(())
}

fn rust_files(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| format!("could not read {}", directory.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The names of functions that are tests: an attribute that ends in `test` or `test(…)` stands above.
fn tests_in(text: &str) -> impl Iterator<Item = &str> {
    let mut marked = false;
    text.lines().filter_map(move |line| {
        let line = line.trim();
        if line.starts_with("#[") {
            marked |= line.contains("test]") || line.contains("test(");
            return None;
        }
        let name = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn "))?.split('(').next()?;
        std::mem::take(&mut marked).then_some(name)
    })
}

/// What a test's name says that it shows.
fn shown_by(name: &str) -> Vec<Shown> {
    let mut shown = Vec::new();
    let mut in_rows = false;
    for word in name.split('_') {
        let scenario = word.strip_prefix('s').filter(|digits| digits.len() == 2).and_then(|digits| digits.parse().ok());
        match (word, word.parse::<u32>(), scenario) {
            ("row" | "rows", ..) => in_rows = true,
            (_, Ok(number), _) if in_rows => shown.push(Shown::Row(number)),
            (_, _, Some(number)) => {
                in_rows = false;
                shown.push(Shown::Scenario(number));
            }
            _ => in_rows = false,
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_they_show() {
        let rows = |numbers: &[u32]| numbers.iter().copied().map(Shown::Row).collect::<Vec<_>>();
        assert_eq!(shown_by("row_23_it_works_with_2_machines"), rows(&[23]));
        assert_eq!(shown_by("rows_31_34_it_rests"), rows(&[31, 34]));
        assert_eq!(shown_by("s19_s20_rows_24_70_it_is_told"), [Shown::Scenario(19), Shown::Scenario(20), Shown::Row(24), Shown::Row(70)]);
        assert_eq!(shown_by("sums_of_12_are_12"), []);
    }

    /// The names between backticks in the last column of a page's tables.
    fn named_in(page: &str) -> Vec<&str> {
        let rows = page.lines().filter_map(|line| line.strip_prefix('|')?.strip_suffix('|')?.rsplit('|').next());
        rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
    }

    #[test]
    fn every_test_that_the_page_of_compatibility_names_exists() {
        let repository = crate::command::repository();
        let files = ["crates", "xtask/src"].map(|place| rust_files(&repository.join(place)).unwrap()).concat();
        let sources: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        let tests: Vec<&str> = sources.iter().flat_map(|text| tests_in(text)).collect();
        let page = fs::read_to_string(repository.join("docs/compatibility.md")).unwrap();
        let named = named_in(&page);
        assert!(named.len() > 50, "the page names {} tests: is the last column still theirs?", named.len());
        let unknown: Vec<&&str> = named.iter().filter(|name| !tests.iter().any(|test| test.starts_with(**name))).collect();
        assert!(unknown.is_empty(), "no test begins with {unknown:?}");
    }

    #[test]
    fn names_are_read_from_the_last_column_and_no_other() {
        assert_eq!(named_in("# `a`\n| `field` | same | `b`, `c` |\n| `other` | new | none |\nAnd `d`.\n"), ["b", "c"]);
    }

    #[test]
    fn only_tests_count() {
        let text = "#[tokio::test(start_paused = true)]\nasync fn row_1_a() {}\nfn row_2_b() {}\n#[test]\nfn row_3_c() {}";
        assert_eq!(tests_in(text).collect::<Vec<_>>(), ["row_1_a", "row_3_c"]);
    }
}
