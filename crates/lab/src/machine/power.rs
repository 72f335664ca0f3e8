//! A machine's place in the rack and its power: who has it, who took it away, and what becomes of a machine whose power has gone.
//! `rack` turns the switches.

use std::{io, process::ExitStatus};

use jiff::Timestamp;
use tokio::sync::watch;

use super::{Installation, Wiring};
use crate::{
    init::{POWERED_OFF, WANTS_REBOOT},
    network::Place,
};

/// A machine's place in the rack.
pub(super) struct Slot {
    pub place: Place,
    /// What somebody else knows it by.
    pub tag: Option<String>,
    pub wiring: Wiring,
    /// What it begins with whenever its power was gone, if its disk is memory.
    pub in_memory: Option<Installation>,
    pub power: Power,
    /// Somebody cut the power it has, or had last.
    cut: bool,
    /// How it died, if nobody asked for its end.
    pub death: Option<String>,
    pub since: Timestamp,
}

pub(super) enum Power {
    Off,
    /// The process whose end is the machine's end, and the word that it has ended and come back if it wanted to.
    On {
        process: u32,
        off: watch::Receiver<bool>,
    },
}

/// What becomes of a machine whose first process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    StayOff,
    Reboot,
}

impl Slot {
    pub fn new(place: Place, tag: Option<String>, wiring: Wiring) -> Self {
        Self { place, tag, wiring, in_memory: None, power: Power::Off, cut: false, death: None, since: Timestamp::now() }
    }

    pub fn turned_on(&mut self, process: u32, off: watch::Receiver<bool>) {
        (self.power, self.cut, self.death, self.since) = (Power::On { process, off }, false, None, Timestamp::now());
    }

    /// Takes the power away, if it has any. A reboot the machine has begun of itself ends there: it stays off until it is given power.
    pub fn cut(&mut self) -> Option<(u32, watch::Receiver<bool>)> {
        let Power::On { process, off } = &self.power else { return None };
        self.cut = true;
        Some((*process, off.clone()))
    }

    /// Its first process has ended. A machine that neither powered off nor was powered off has died, which a person wants to know.
    pub fn ended(&mut self, how: &io::Result<ExitStatus>) -> Next {
        (self.power, self.since) = (Power::Off, Timestamp::now());
        let code = how.as_ref().ok().and_then(ExitStatus::code);
        let is = |wanted: u8| code == Some(i32::from(wanted));
        if self.cut {
            return Next::StayOff;
        }
        if is(WANTS_REBOOT) {
            return Next::Reboot;
        }
        if !is(POWERED_OFF) {
            self.death = Some(how.as_ref().map_or_else(ToString::to_string, ToString::to_string));
        }
        Next::StayOff
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    fn running() -> (Slot, watch::Sender<bool>) {
        let mut slot = Slot::new(Place(0), None, Wiring::of_place("rack", Place(0)));
        let (ended, off) = watch::channel(false);
        slot.turned_on(7, off);
        (slot, ended)
    }

    fn exit(code: u8) -> ExitStatus {
        ExitStatus::from_raw(i32::from(code) << 8)
    }

    #[test]
    fn a_machine_that_reboots_itself_comes_back_unless_its_power_is_cut_meanwhile() {
        let (mut slot, _word) = running();
        assert_eq!(slot.ended(&Ok(exit(WANTS_REBOOT))), Next::Reboot);

        let (mut slot, word) = running();
        assert_eq!(slot.cut().map(|(process, _)| process), Some(7));
        assert_eq!(slot.ended(&Ok(exit(WANTS_REBOOT))), Next::StayOff);
        assert!(slot.cut().is_none(), "it has no power that could be cut");

        slot.turned_on(8, word.subscribe());
        assert_eq!(slot.ended(&Ok(exit(WANTS_REBOOT))), Next::Reboot, "a cut holds until power is given again");
    }

    #[test]
    fn only_an_end_that_nobody_asked_for_is_a_death() {
        let (mut slot, _word) = running();
        assert_eq!((slot.ended(&Ok(exit(POWERED_OFF))), &slot.death), (Next::StayOff, &None));
        let (mut slot, _word) = running();
        slot.cut();
        assert_eq!((slot.ended(&Ok(ExitStatus::from_raw(9))), &slot.death), (Next::StayOff, &None));
        let (mut slot, _word) = running();
        assert_eq!(slot.ended(&Ok(ExitStatus::from_raw(9))), Next::StayOff);
        assert!(slot.death.as_ref().is_some_and(|words| words.contains("signal: 9")), "{:?}", slot.death);
    }
}
