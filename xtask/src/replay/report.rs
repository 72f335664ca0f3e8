//! What a replay found, for people: a table by endpoint, every difference, the share that agrees.

use std::collections::BTreeMap;

use comfy_table::{Table, presets};

use super::{
    places::{has_form, parts},
    play::{Outcome, Played},
    recordings::{Recording, Request, relative},
};

#[derive(Default)]
struct Row {
    agree: usize,
    compared: usize,
    left_out: usize,
}

/// The endpoint a request went to: its path without ids, and the operation.
fn endpoint(request: &Request) -> String {
    let named_by_word = ["zones", "tags", "users"];
    let mut previous = "";
    let mut path = Vec::new();
    for (part, kind) in parts(relative(&request.path)) {
        let id = kind.is_some_and(|kind| has_form(kind, part))
            || named_by_word.contains(&previous) && !part.is_empty() && !part.starts_with("op-");
        path.push(if id { "{id}" } else { part });
        previous = part;
    }
    let operation = request.operation().map_or_else(String::new, |operation| format!(" {operation}"));
    format!("{} {}{operation}", request.method, path.join("/"))
}

/// How much agrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Score {
    pub agree: usize,
    pub compared: usize,
}

impl Score {
    #[expect(clippy::cast_precision_loss, reason = "there are hundreds of recordings")]
    pub fn percent(self) -> f64 {
        if self.compared == 0 { 0.0 } else { self.agree as f64 * 100.0 / self.compared as f64 }
    }
}

pub fn score(played: &Played) -> Score {
    let compared = played.outcomes.iter().filter_map(|outcome| match outcome {
        Outcome::Compared(differences) => Some(differences.is_empty()),
        Outcome::LeftOut(_) => None,
    });
    let agreeing: Vec<bool> = compared.collect();
    Score { agree: agreeing.iter().filter(|agree| **agree).count(), compared: agreeing.len() }
}

/// Agreement by endpoint.
pub fn table(recordings: &[Recording], played: &Played) -> String {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for (recording, outcome) in recordings.iter().zip(&played.outcomes) {
        let Some(exchange) = recording.exchanges.first() else { continue };
        let row = rows.entry(endpoint(&exchange.request)).or_default();
        match outcome {
            Outcome::LeftOut(_) => row.left_out += 1,
            Outcome::Compared(differences) => {
                row.compared += 1;
                row.agree += usize::from(differences.is_empty());
            }
        }
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["endpoint", "agree", "compared", "left out"]);
    for (endpoint, row) in rows {
        table.add_row([endpoint, row.agree.to_string(), row.compared.to_string(), row.left_out.to_string()]);
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Every difference, and what was left out. With `all`, also what agrees.
pub fn differences<'a>(recordings: impl Iterator<Item = (&'a Recording, &'a Outcome)>, all: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for (recording, outcome) in recordings {
        let Some(exchange) = recording.exchanges.first() else { continue };
        let named = format!("{:03} {} ({})", recording.number, recording.name, endpoint(&exchange.request));
        match outcome {
            Outcome::LeftOut(reason) => lines.push(format!("{named}: left out: {reason}")),
            Outcome::Compared(differences) if differences.is_empty() => {
                if all {
                    lines.push(format!("{named}: agrees"));
                }
            }
            Outcome::Compared(differences) => {
                lines.push(named);
                for difference in differences {
                    lines.push(format!(
                        "    {}\n        expected {}\n        got      {}",
                        difference.place, difference.expected, difference.got
                    ));
                }
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{compare::Difference, recordings::Exchange};

    #[test]
    fn endpoints_have_no_ids() {
        let request = |method: &str, path: &str, op: Option<&str>| Request {
            method: method.into(),
            path: format!("/MAAS/api/2.0/{path}"),
            query: op.map(|op| ("op".to_owned(), op.to_owned())).into_iter().collect(),
            ..Request::default()
        };
        assert_eq!(endpoint(&request("GET", "machines/abc123/", None)), "GET machines/{id}/");
        assert_eq!(
            endpoint(&request("POST", "nodes/abc123/interfaces/7/", Some("link_subnet"))),
            "POST nodes/{id}/interfaces/{id}/ link_subnet"
        );
        assert_eq!(endpoint(&request("GET", "zones/az1/", None)), "GET zones/{id}/");
        assert_eq!(endpoint(&request("GET", "users/op-whoami", None)), "GET users/op-whoami");
    }

    #[test]
    fn every_difference_is_told() {
        let difference = |number: u32| Difference { place: number.to_string(), expected: "a".into(), got: "b".into() };
        let response = serde_json::from_value(serde_json::json!({"status": 200, "body": [], "body_kind": "json"})).unwrap();
        let exchanges = vec![Exchange { request: Request::default(), response }];
        let recording = Recording { number: 1, name: "zones".into(), race: false, exchanges };
        let outcome = Outcome::Compared((0..40).map(difference).collect());
        assert_eq!(differences([(&recording, &outcome)].into_iter(), false).len(), 41);
    }

    #[test]
    fn nothing_compared_is_nothing_agreed() {
        assert!(Score { agree: 0, compared: 0 }.percent() < f64::EPSILON);
        assert!((Score { agree: 3, compared: 4 }.percent() - 75.0).abs() < f64::EPSILON);
    }
}
