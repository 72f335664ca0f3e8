//! Whose a server is. Everything that deploys, powers, releases or deletes one takes this verdict first, on a fresh look at it.
//!
//! Of what we can know, the owner and the marks prove that a server is ours. Without marks it is ours only if its agent name is our
//! claim (an allocation whose answer got lost, or whose marks somebody removed), or if another provider recorded it and we are taking it
//! over. Nothing is recorded before it is marked, so a recorded server of our user without marks and with another agent name was released
//! and allocated again for somebody else a moment ago.

use api::Claim;

use crate::{Failure, FailureKind, Lookup, Marks, Server};

/// What a verdict rests on.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The MAAS user we act as.
    pub user: &'a str,
    /// The claim of the object; none if another provider made it and we have not taken it over yet.
    pub claim: Option<&'a Claim>,
    /// Whether MAAS lists the server under our claim as its agent name.
    pub has_our_agent_name: bool,
    /// Whether another provider recorded it for the object and we have not marked it yet.
    pub recorded_by_another_provider: bool,
    /// Whether it has the name that was written down before it was composed, on the VM host that was chosen.
    pub composed_by_us: bool,
    /// What MAAS showed.
    pub server: &'a Lookup<Server>,
}

/// Whose a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Ours.
    Ours,
    /// Ours, but it has to be marked before anything else.
    OursUnmarked,
    /// Held by our user for an object that another provider made: it has to be claimed and marked before anything else.
    Adoptable,
    /// A virtual machine that we composed and nobody has allocated yet: it has to be allocated before anything else.
    Unallocated,
    /// Held by our user for another object. Not ours to touch.
    Foreign {
        /// Whose it is, in words.
        holder: String,
    },
    /// It was ours and is not any more.
    TakenAway(Loss),
    /// Nobody knows now.
    Undecided(Failure),
    /// It has to be looked at again first.
    LookAgain,
}

/// How a server was taken away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loss {
    /// It is nobody's.
    Released,
    /// It is another user's.
    OtherOwner(String),
    /// We may not see it, so it is another user's, or rights were taken from ours.
    Hidden,
    /// It is not in MAAS any more.
    Deleted,
}

fn bears_our_marks(evidence: &Evidence<'_>, server: &Server) -> bool {
    let marked = Marks::claim_on(&server.marks);
    marked.is_some() && marked == evidence.claim.map(Claim::as_str)
}

const NAMELESS: &str = "somebody who uses the same MAAS user";

/// Whose the server is.
pub fn verdict(evidence: Evidence<'_>) -> Verdict {
    let server = match evidence.server {
        Lookup::Found(server) => server,
        Lookup::Missing => return Verdict::TakenAway(Loss::Deleted),
        Lookup::Forbidden => return Verdict::TakenAway(Loss::Hidden),
        Lookup::Failed(failure) => return Verdict::Undecided(failure.clone()),
        Lookup::Outdated => return Verdict::LookAgain,
    };
    match &server.owner {
        None if evidence.composed_by_us => return Verdict::Unallocated,
        None => return Verdict::TakenAway(Loss::Released),
        // Marks go with every release, so ours on another user's server mean that our user is not who it was.
        Some(owner) if owner != evidence.user && bears_our_marks(&evidence, server) => {
            let words = format!("the machine has our marks and belongs to MAAS user {owner}, and we are {}", evidence.user);
            return Verdict::Undecided(Failure { kind: FailureKind::NotPermitted, words });
        }
        Some(owner) if owner != evidence.user => return Verdict::TakenAway(Loss::OtherOwner(owner.clone())),
        Some(_) => {}
    }
    match Marks::claim_on(&server.marks) {
        Some(_) if bears_our_marks(&evidence, server) => Verdict::Ours,
        Some(_) => Verdict::Foreign { holder: Marks::holder_of(&server.marks) },
        None if evidence.claim.is_some() && evidence.has_our_agent_name => Verdict::OursUnmarked,
        None if evidence.recorded_by_another_provider => Verdict::Adoptable,
        None => Verdict::Foreign { holder: NAMELESS.to_owned() },
    }
}
