//! The supervisor of level nodes is the first process of its PID namespace, so whatever loses its parent in there becomes its child:
//! daemons of `lab exec`, the first process of a machine whose `unshare` was killed. Nobody waits for those, and a dead process that is
//! not waited for keeps its number and its namespaces. `supervise` runs this beside the lab.

use std::{collections::BTreeSet, fs, time::Duration};

use rustix::process::{Pid, WaitOptions, waitpid};

/// Who started a process hears of its end at once. What is still unburied at the second look is nobody's.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A dead child, by its number and the time it was started at: numbers come back.
type Dead = (i32, String);

/// Buries the children that nobody has started, for as long as the lab lives.
pub(crate) async fn bury() {
    let mut seen = BTreeSet::new();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let dead = dead_children();
        for (process, _) in dead.intersection(&seen) {
            // Buried by somebody else in between is as good.
            let _ = waitpid(Pid::from_raw(*process), WaitOptions::NOHANG);
        }
        seen = dead;
    }
}

fn dead_children() -> BTreeSet<Dead> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let children: Vec<i32> =
        lists.flat_map(|list| list.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>()).collect();
    children.into_iter().filter_map(|child| Some((child, death(&fs::read_to_string(format!("/proc/{child}/stat")).ok()?)?))).collect()
}

/// When a dead process was started, as the kernel counts; nothing for one that lives.
fn death(stat: &str) -> Option<String> {
    // The name before the state stands in brackets and may hold anything.
    let mut words = stat.rsplit(')').next()?.split_whitespace();
    if words.next()? != "Z" {
        return None;
    }
    words.nth(18).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::{
        process::Command,
        time::{Duration, Instant},
    };

    use super::*;

    #[test]
    fn a_child_that_has_ended_and_was_not_waited_for_is_seen_and_one_that_lives_is_not() {
        let (mut ended, mut lives) = (Command::new("true").spawn().unwrap(), Command::new("sleep").arg("1000").spawn().unwrap());
        let has = |child: u32| dead_children().iter().any(|(dead, _)| u32::try_from(*dead) == Ok(child));
        let deadline = Instant::now() + Duration::from_secs(20);
        while !has(ended.id()) {
            assert!(Instant::now() < deadline, "nobody sees that it has ended");
        }
        assert!(!has(lives.id()));
        ended.wait().unwrap();
        assert!(!has(ended.id()));
        lives.kill().unwrap();
        lives.wait().unwrap();
    }

    #[test]
    fn the_state_stands_behind_whatever_name_a_program_has() {
        let stat = |state: &str| format!("7 (a ) Z 1) {state} 1 7 7 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0");
        assert_eq!(death(&stat("Z")).as_deref(), Some("4711"));
        assert_eq!(death(&stat("S")), None);
    }
}
