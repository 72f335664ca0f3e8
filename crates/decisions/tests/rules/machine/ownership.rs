//! The verdict, over everything that can be known.

use std::collections::BTreeMap;

use decisions::{
    Failure, FailureKind, Lookup, Server, ServerStatus,
    ownership::{Evidence, Loss, Verdict, verdict},
};

use super::facts::{US, claim, server};

/// What the rows below vary: owner, marks, agent name, adoption, composed.
type Row = (Option<&'static str>, Option<&'static str>, bool, bool, bool, &'static str);

const OURS: &str = "ms-00000000000000000000000000000007";

fn found(owner: Option<&str>, mark: Option<&str>) -> Lookup<Server> {
    in_state(owner, mark, ServerStatus::Deployed)
}

fn in_state(owner: Option<&str>, mark: Option<&str>, status: ServerStatus) -> Lookup<Server> {
    let marks = mark.map(|mark| ("metalshift-claim".to_owned(), mark.to_owned()));
    let marks: BTreeMap<String, String> = marks.into_iter().collect();
    Lookup::Found(Server { owner: owner.map(str::to_owned), marks, ..server(status) })
}

#[expect(clippy::fn_params_excessive_bools, reason = "as many as the rows below vary")]
fn judge(server: &Lookup<Server>, with_claim: bool, agent: bool, adoption: bool, composed: bool) -> Verdict {
    let claim = claim();
    verdict(Evidence {
        user: US,
        claim: with_claim.then_some(&claim),
        has_our_agent_name: agent,
        recorded_by_another_provider: adoption,
        composed_by_us: composed,
        server,
    })
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Ours => "ours",
        Verdict::OursUnmarked => "mark it",
        Verdict::Adoptable => "adopt it",
        Verdict::Unallocated => "allocate it",
        Verdict::Foreign { .. } => "foreign",
        Verdict::TakenAway(_) => "taken away",
        Verdict::Undecided(_) => "nobody knows",
        Verdict::LookAgain => "look again",
    }
}

#[test]
fn owner_and_marks_decide_in_every_state_and_agent_names_only_recover() {
    let rows: [Row; 17] = [
        // owner, marks, agent name ours, recorded by another provider, composed by us
        (Some(US), Some(OURS), true, false, false, "ours"),
        (Some(US), Some(OURS), false, false, false, "ours"),
        (Some(US), Some(OURS), false, true, false, "ours"),
        (Some(US), Some("ms-other"), true, false, false, "foreign"),
        (Some(US), Some("ms-other"), false, true, false, "foreign"),
        (Some(US), Some("ms-other"), false, false, true, "foreign"),
        (Some(US), None, true, false, false, "mark it"),
        (Some(US), None, true, true, false, "mark it"),
        (Some(US), None, false, true, false, "adopt it"),
        // Recorded, but released and allocated again for somebody else a moment ago.
        (Some(US), None, false, false, false, "foreign"),
        // Composed by us and taken by somebody's allocation.
        (Some(US), None, false, false, true, "foreign"),
        (None, None, false, false, false, "taken away"),
        (None, None, true, false, false, "taken away"),
        (None, None, false, false, true, "allocate it"),
        // Somebody renamed our user, or gave us another one's key.
        (Some("somebody"), Some(OURS), true, true, true, "nobody knows"),
        (Some("somebody"), Some("ms-other"), true, true, true, "taken away"),
        (Some("somebody"), None, true, false, false, "taken away"),
    ];
    for (owner, mark, agent, adoption, composed, expected) in rows {
        for status in ServerStatus::all() {
            let verdict = judge(&in_state(owner, mark, status), true, agent, adoption, composed);
            let row = format!("{owner:?} {mark:?} agent {agent} adoption {adoption} composed {composed} {status}: {verdict:?}");
            assert_eq!(word(&verdict), expected, "{row}");
        }
    }
}

#[test]
fn without_a_claim_only_what_another_provider_recorded_can_become_ours() {
    for (mark, adoption, expected) in
        [(None, true, "adopt it"), (None, false, "foreign"), (Some(OURS), true, "foreign"), (Some("ms-other"), true, "foreign")]
    {
        assert_eq!(word(&judge(&found(Some(US), mark), false, true, adoption, false)), expected, "{mark:?} {adoption}");
    }
}

#[test]
fn what_cannot_be_seen_is_never_ours() {
    let failure = Failure { kind: FailureKind::Unavailable, words: "down".to_owned() };
    for (lookup, expected) in [
        (Lookup::Missing, Verdict::TakenAway(Loss::Deleted)),
        (Lookup::Forbidden, Verdict::TakenAway(Loss::Hidden)),
        (Lookup::Failed(failure.clone()), Verdict::Undecided(failure)),
        (Lookup::Outdated, Verdict::LookAgain),
    ] {
        assert_eq!(judge(&lookup, true, true, true, true), expected);
    }
}
