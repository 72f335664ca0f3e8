//! Races: requests that were sent at once. Who won is chance, so the answers are compared as multisets.

use super::{
    compare::{self, About, Answer, Difference},
    mapping::Mapping,
    recordings::{Exchange, Recording},
};

/// What recordings of races keep of a machine.
const KEPT_OF_MACHINES: [&str; 4] = ["hostname", "owner", "status_name", "system_id"];

/// The differences of the pairing that has none, or else of the answers in the order they came.
pub fn compare(recording: &Recording, answers: &[Answer], leave_out: &[String], mapping: &mut Mapping) -> Vec<Difference> {
    let race = Race { exchanges: &recording.exchanges, answers, leave_out };
    if race.pair(0, &mut vec![false; answers.len()], mapping) {
        return Vec::new();
    }
    let mark = mapping.mark();
    let in_order = recording.exchanges.iter().zip(answers).enumerate();
    let differences = in_order
        .flat_map(|(index, (exchange, answer))| {
            let about = about(exchange, leave_out);
            let differences = compare::compare(&exchange.response, answer, about, mapping);
            differences
                .into_iter()
                .map(move |difference| Difference { place: format!("({}) {}", index + 1, difference.place), ..difference })
        })
        .collect();
    mapping.forget_since(mark);
    differences
}

struct Race<'a> {
    exchanges: &'a [Exchange],
    answers: &'a [Answer],
    leave_out: &'a [String],
}

impl Race<'_> {
    /// Pairs this exchange and those after it with answers that are not taken yet.
    fn pair(&self, index: usize, taken: &mut Vec<bool>, mapping: &mut Mapping) -> bool {
        let Some(exchange) = self.exchanges.get(index) else { return true };
        for (other, answer) in self.answers.iter().enumerate() {
            if taken[other] {
                continue;
            }
            let mark = mapping.mark();
            if compare::compare(&exchange.response, answer, about(exchange, self.leave_out), mapping).is_empty() {
                taken[other] = true;
                if self.pair(index + 1, taken, mapping) {
                    return true;
                }
                taken[other] = false;
            }
            mapping.forget_since(mark);
        }
        false
    }
}

fn about<'a>(exchange: &'a Exchange, leave_out: &'a [String]) -> About<'a> {
    let cut = exchange.response.body.as_object().is_some_and(|body| {
        let mut keys: Vec<&str> = body.keys().map(String::as_str).collect();
        keys.sort_unstable();
        keys == KEPT_OF_MACHINES
    });
    About { path: &exchange.request.path, leave_out, cut }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::replay::recordings::Request;

    fn race(bodies: &[Value]) -> Recording {
        let response = |body: &Value| serde_json::from_value(json!({"status": 200, "body": body, "body_kind": "json"})).unwrap();
        let exchanges = bodies.iter().map(|body| Exchange { request: Request::default(), response: response(body) });
        Recording { number: 1, name: "race".into(), race: true, exchanges: exchanges.collect() }
    }

    fn answers(bodies: &[Value]) -> Vec<Answer> {
        bodies.iter().map(|body| Answer { status: 200, headers: Vec::new(), body: body.to_string().into_bytes() }).collect()
    }

    fn machine(name: &str) -> Value {
        json!({"system_id": "abc123", "hostname": name, "status_name": "Ready", "owner": null})
    }

    #[test]
    fn the_order_of_answers_does_not_count_but_their_number_does() {
        let (one, two) = (machine("one"), machine("two"));
        let recording = race(&[one.clone(), one.clone(), two.clone()]);
        let differences = |bodies: &[Value]| compare(&recording, &answers(bodies), &[], &mut Mapping::default());
        assert_eq!(differences(&[two.clone(), one.clone(), one.clone()]), []);
        assert_ne!(differences(&[two.clone(), two, one]), []);
    }

    #[test]
    fn machines_are_compared_by_what_was_kept_of_them_and_others_wholly() {
        let mut whole = machine("one");
        whole["memory"] = 1.into();
        assert_eq!(compare(&race(&[machine("one")]), &answers(&[whole]), &[], &mut Mapping::default()), []);
        assert_ne!(compare(&race(&[json!({"a": 1})]), &answers(&[json!({"a": 1, "b": 2})]), &[], &mut Mapping::default()), []);
    }

    #[test]
    fn what_is_paired_in_one_answer_holds_in_the_others() {
        let zone = |id: u32| json!({"id": id, "resource_uri": "/MAAS/api/2.0/zones/x/"});
        let recording = race(&[zone(5), zone(6)]);
        assert_eq!(compare(&recording, &answers(&[zone(9), zone(8)]), &[], &mut Mapping::default()), []);
        assert_ne!(compare(&recording, &answers(&[zone(9), zone(9)]), &[], &mut Mapping::default()), []);
    }
}
