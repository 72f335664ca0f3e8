//! The rules of ends and restarts, as pure functions.

use std::collections::VecDeque;
use std::time::Instant;

use crate::init::reaper::Exit;
use crate::init::unit::definition::StartLimit;
use crate::init::unit::service::{Restart, Service, ServiceType};

/// How a service ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// As it should.
    Clean,
    /// With a bad exit status.
    ExitStatus(i32),
    /// By a signal.
    Signal(i32),
    /// Too slow to start, or to stop.
    Timeout,
    /// It could not be started at all, or broke the rules of its type.
    Impossible,
}

impl Ending {
    /// The word of `Result=`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Clean => "success",
            Self::ExitStatus(_) => "exit-code",
            Self::Signal(_) => "signal",
            Self::Timeout => "timeout",
            Self::Impossible => "resources",
        }
    }
}

/// Signals by which a daemon is usually asked to end: hangup, interrupt, broken pipe, terminate.
const POLITE: [i32; 4] = [1, 2, 13, 15];

/// Judges the end of a main process.
pub fn ending(service: &Service, exit: Exit) -> Ending {
    let listed = service.success_exit_status.iter().any(|entry| names(entry, exit));
    match exit {
        _ if listed => Ending::Clean,
        Exit::Status(0) => Ending::Clean,
        Exit::Signal(signal) if POLITE.contains(&signal) && service.kind != ServiceType::Oneshot => Ending::Clean,
        Exit::Status(status) => Ending::ExitStatus(status),
        Exit::Signal(signal) => Ending::Signal(signal),
    }
}

/// Whether the service is to be started again by itself.
pub fn restarts(service: &Service, ending: Ending, exit: Option<Exit>) -> bool {
    let listed = |list: &[String]| exit.is_some_and(|exit| list.iter().any(|entry| names(entry, exit)));
    if listed(&service.restart_prevent_exit_status) {
        return false;
    }
    if listed(&service.restart_force_exit_status) {
        return true;
    }
    match service.restart {
        Restart::No => false,
        Restart::Always => true,
        Restart::OnSuccess => ending == Ending::Clean,
        Restart::OnFailure => ending != Ending::Clean,
        Restart::OnAbnormal => matches!(ending, Ending::Signal(_) | Ending::Timeout),
        Restart::OnAbort => matches!(ending, Ending::Signal(_)),
    }
}

fn names(entry: &str, exit: Exit) -> bool {
    match exit {
        Exit::Status(status) => entry.parse() == Ok(status),
        Exit::Signal(number) => {
            crate::init::unit::service::parse_signal(entry).is_some_and(|signal| signal.as_raw() == number) && entry.parse::<i32>().is_err()
        }
    }
}

/// Notes a start; false when there were too many of late.
pub fn may_start(starts: &mut VecDeque<Instant>, limit: StartLimit, now: Instant) -> bool {
    let Some(interval) = limit.interval.limit() else { return true };
    if interval.is_zero() || limit.burst == 0 {
        return true;
    }
    starts.retain(|start| now.saturating_duration_since(*start) < interval);
    if starts.len() >= limit.burst as usize {
        return false;
    }
    starts.push_back(now);
    true
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::init::unit::span::Span;

    #[test]
    fn each_restart_setting_knows_its_endings() {
        let endings = [Ending::Clean, Ending::ExitStatus(1), Ending::Signal(11), Ending::Timeout];
        for (restart, expected) in [
            (Restart::No, [false, false, false, false]),
            (Restart::Always, [true, true, true, true]),
            (Restart::OnSuccess, [true, false, false, false]),
            (Restart::OnFailure, [false, true, true, true]),
            (Restart::OnAbnormal, [false, false, true, true]),
            (Restart::OnAbort, [false, false, true, false]),
        ] {
            let service = Service { restart, ..Service::default() };
            assert_eq!(endings.map(|ending| restarts(&service, ending, None)), expected, "{restart:?}");
        }
    }

    #[test]
    fn listed_statuses_prevent_or_force() {
        let service =
            Service { restart: Restart::Always, restart_prevent_exit_status: vec!["7".into(), "SIGABRT".into()], ..Service::default() };
        assert!(!restarts(&service, Ending::ExitStatus(7), Some(Exit::Status(7))));
        assert!(!restarts(&service, Ending::Signal(6), Some(Exit::Signal(6))));
        assert!(restarts(&service, Ending::ExitStatus(6), Some(Exit::Status(6))));
        let service = Service { restart_force_exit_status: vec!["3".into()], ..Service::default() };
        assert!(restarts(&service, Ending::ExitStatus(3), Some(Exit::Status(3))));
    }

    #[test]
    fn a_daemon_may_end_by_a_polite_signal_and_a_oneshot_may_not() {
        let daemon = Service::default();
        assert_eq!(ending(&daemon, Exit::Signal(15)), Ending::Clean);
        assert_eq!(ending(&daemon, Exit::Signal(9)), Ending::Signal(9));
        let oneshot = Service { kind: ServiceType::Oneshot, ..Service::default() };
        assert_eq!(ending(&oneshot, Exit::Signal(15)), Ending::Signal(15));
        let listed = Service { success_exit_status: vec!["143".into()], ..Service::default() };
        assert_eq!(ending(&listed, Exit::Status(143)), Ending::Clean);
    }

    #[test]
    fn too_many_starts_within_the_interval_are_refused() {
        let limit = StartLimit { interval: Span::Limited(Duration::from_secs(10)), burst: 2 };
        let now = Instant::now();
        let mut starts = VecDeque::new();
        assert!(may_start(&mut starts, limit, now) && may_start(&mut starts, limit, now));
        assert!(!may_start(&mut starts, limit, now + Duration::from_secs(9)));
        assert!(may_start(&mut starts, limit, now + Duration::from_secs(11)));
        let none = StartLimit { interval: Span::Limited(Duration::ZERO), burst: 1 };
        assert!((0..20).all(|_| may_start(&mut starts, none, now)));
    }
}
