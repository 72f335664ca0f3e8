//! What becomes of the orders of an emulator that has ended: the lab is asked until it answers, because a machine that nobody takes up
//! runs on without MAAS, and what MAAS still waits for is done again.

use std::time::Duration;

use lab::LabError;
use maas_emulator::world::status::Status;

/// The pause before a lab that did not answer is asked again.
const REST: Duration = Duration::from_secs(1);
/// So many times it is asked before its silence is told again.
const TOLD_EVERY: u32 = 60;

/// Asks the lab until it answers. Orders wait meanwhile; nothing when nobody is left to give any.
pub async fn answer<Answer, Asked>(ask: impl Fn() -> Asked, is_over: impl Fn() -> bool) -> Option<Answer>
where
    Asked: Future<Output = Result<Answer, LabError>>,
{
    for asked in 0_u32.. {
        match ask().await {
            Ok(answer) => return Some(answer),
            // A lab starts its MAAS before it is up itself.
            Err(LabError::Starting { .. }) => {}
            Err(error) if asked % TOLD_EVERY == 0 => {
                tracing::warn!(%error, "the lab does not tell which machines it has; orders wait until it does");
            }
            Err(error) => tracing::debug!(%error, "the lab does not tell which machines it has"),
        }
        if is_over() {
            return None;
        }
        tokio::time::sleep(REST).await;
    }
    None
}

/// Where a machine of MAAS is when the lab has told what it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// It has a place in the lab.
    pub in_lab: bool,
    /// And power there.
    pub running: bool,
    /// An order of this emulator's waits for it, which says all that is to be done.
    pub ordered: bool,
}

/// What the emulator of before was told last, which may have died with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// MAAS waits for a boot that nobody has begun.
    Boot,
    /// MAAS waits for the end of a power that nobody has.
    PowerOff,
}

/// What is to be done again for a machine.
pub fn lost(status: Status, found: Found) -> Option<Lost> {
    match status {
        _ if found.ordered => None,
        Status::Deploying if !found.running => Some(Lost::Boot),
        Status::Releasing if !found.in_lab => Some(Lost::PowerOff),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lab_that_fails_is_asked_until_it_answers_or_nobody_is_left() {
        let asked = Cell::new(0);
        let ask = || {
            asked.set(asked.get() + 1);
            std::future::ready(match asked.get() {
                1 => Err(LabError::Starting { name: "l".into() }),
                2..100 => Err(LabError::Silent { name: "l".into() }),
                _ => Ok("machines"),
            })
        };
        assert_eq!(answer(ask, || asked.get() >= 50).await, None);
        assert_eq!(asked.get(), 50, "nobody waits for an answer any more");
        assert_eq!(answer(ask, || false).await, Some("machines"));
        assert_eq!(asked.get(), 100);
    }

    #[test]
    fn what_maas_waits_for_and_nobody_does_is_done_again_once() {
        let nowhere = Found::default();
        let (off, running) = (Found { in_lab: true, ..nowhere }, Found { in_lab: true, running: true, ordered: false });
        let ordered = |found: Found| Found { ordered: true, ..found };
        for (status, found, expected) in [
            (Status::Deploying, nowhere, Some(Lost::Boot)),
            (Status::Deploying, off, Some(Lost::Boot)),
            (Status::Deploying, running, None),
            (Status::Deploying, ordered(nowhere), None),
            (Status::Releasing, nowhere, Some(Lost::PowerOff)),
            (Status::Releasing, off, None),
            (Status::Releasing, running, None),
            (Status::Releasing, ordered(nowhere), None),
            (Status::Deployed, nowhere, None),
            (Status::Ready, running, None),
        ] {
            assert_eq!(lost(status, found), expected, "{status:?} {found:?}");
        }
    }
}
