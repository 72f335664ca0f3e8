//! PID 1 of a machine with real processes: units, `systemctl`, the end. User-data is the business of the tests of whole machines, in
//! the crate `metalshift`.
//!
//! PID 1 owns all children of its process, so each machine is a process of its own: this very test binary, started with [`ROLE`] set.

#![allow(clippy::expect_used, clippy::print_stderr, reason = "the tools of tests end the test or say why it is skipped")]

#[path = "init/machine.rs"]
mod machine;

use std::time::Duration;

use lab::init::{InitOptions, POWERED_OFF, WANTS_REBOOT};
use machine::Machine;

/// Names the root directory of the machine whose PID 1, or whose `systemctl`, this process is to be.
const ROLE: &str = "LAB_INIT_TEST_ROOT";

/// Not a test: what the processes started by tests run. Does nothing when a person or the test runner calls it.
#[test]
fn role_of_a_machine() {
    let Ok(root) = std::env::var(ROLE) else { return };
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).expect("orphans come to PID 1");
    let layout = lab::init::layout::Layout::at(root);
    let options = InitOptions { layout, control_groups: None, stop_within: Duration::from_secs(5) };
    let status = lab::init::run(&options);
    std::fs::write(options.layout.path("/var/lib/metalshift/exit-status"), status.to_string()).expect("a place for the exit status");
}

#[test]
fn units_start_in_order_with_what_they_require() {
    let machine = Machine::boot(&[
        ("first.service", "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'sleep 0.2; echo first >> ROOT/order'\n"),
        (
            "second.service",
            "[Unit]\nRequires=first.service\nAfter=first.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c 'echo second >> ROOT/order'\n[Install]\nWantedBy=multi-user.target\n",
        ),
        (
            "third.service",
            "[Unit]\nAfter=second.service\n[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo third >> ROOT/order'\n[Install]\nWantedBy=multi-user.target\n",
        ),
    ]);
    let report = machine.wait_for_boot();
    assert!(report.succeeded, "{}", machine.console());
    assert_eq!(machine.read("order"), "first\nsecond\nthird\n");
    assert_eq!(machine.systemctl("is-active second").status, 0);
    assert_eq!(machine.systemctl("is-active first").status, 3);
}

#[test]
fn exit_statuses_are_those_of_the_real_systemctl() {
    let machine = Machine::boot(&[
        ("sleeper.service", "[Service]\nExecStart=/bin/sleep 1000\n[Install]\nWantedBy=multi-user.target\n"),
        ("bad.service", "[Service]\nType=oneshot\nExecStart=/bin/false\n"),
    ]);
    machine.wait_for_boot();
    for (arguments, status, output) in [
        ("is-active sleeper", 0, "active"),
        ("is-active none", 4, "inactive"),
        ("is-enabled sleeper", 0, "enabled"),
        ("is-enabled bad", 0, "static"),
        ("is-enabled none", 1, ""),
        ("status none", 4, ""),
        ("start none", 5, ""),
        ("stop none", 5, ""),
        ("start bad", 1, ""),
        ("is-failed bad", 0, "failed"),
        ("is-failed sleeper", 1, "active"),
        ("status bad", 3, "failed (failed)"),
        ("show sleeper -p ActiveState --value", 0, "active"),
        ("stop sleeper", 0, ""),
        ("is-active sleeper", 3, "inactive"),
        ("status sleeper", 3, "Loaded: loaded"),
        ("start sleeper", 0, ""),
        ("restart sleeper", 0, ""),
        ("mask sleeper", 1, ""),
        ("mask other", 0, ""),
        ("start other", 1, ""),
        ("is-enabled other", 1, "masked"),
        ("unmask other", 0, ""),
        ("start other", 5, ""),
        ("disable --now sleeper", 0, ""),
        ("is-active sleeper", 3, "inactive"),
        ("is-enabled sleeper", 1, "disabled"),
        ("daemon-reload", 0, ""),
    ] {
        let answer = machine.systemctl(arguments);
        assert_eq!(answer.status, status, "systemctl {arguments}: {} {}", answer.output, answer.errors);
        assert!(answer.output.contains(output), "systemctl {arguments}: {}", answer.output);
    }
    let unknown = machine.systemctl("frobnicate sleeper");
    assert_eq!(unknown.status, 1);
    assert!(unknown.errors.contains("frobnicate is not known here"), "{}", unknown.errors);
    assert!(machine.console().contains("systemctl frobnicate sleeper: verb frobnicate is not known here"), "{}", machine.console());
}

#[test]
fn a_service_that_fails_restarts_until_its_limit() {
    let machine = Machine::boot(&[(
        "crash.service",
        "[Unit]\nStartLimitBurst=3\nStartLimitIntervalSec=100\n[Service]\nExecStart=/bin/sh -c 'echo last words; exit 7'\nRestart=on-failure\nRestartSec=10ms\n[Install]\nWantedBy=multi-user.target\n",
    )]);
    machine.wait_until("the limit is hit", |machine| machine.systemctl("show crash -p Result --value").output.trim() == "start-limit-hit");
    assert_eq!(machine.systemctl("is-failed crash").status, 0);
    let log = machine.read("var/log/metalshift/crash.service.log");
    assert_eq!(log.matches("last words").count(), 3, "{log}");
    assert!(machine.console().contains("main process ended with exit status 7"), "{}", machine.console());
    assert!(machine.console().contains("last words"), "{}", machine.console());
}

#[test]
fn a_killed_service_comes_back_and_a_stopped_one_does_not() {
    let machine = Machine::boot(&[(
        "daemon.service",
        "[Service]\nExecStart=/bin/sleep 1000\nRestart=always\nRestartSec=10ms\n[Install]\nWantedBy=multi-user.target\n",
    )]);
    machine.wait_for_boot();
    assert_eq!(machine.systemctl("kill -s KILL daemon").status, 0);
    machine.wait_until("it is back", |machine| {
        machine.systemctl("show daemon -p NRestarts --value").output.trim() == "1" && machine.systemctl("is-active daemon").status == 0
    });
    assert_eq!(machine.systemctl("stop daemon").status, 0);
    assert_eq!(machine.systemctl("is-active daemon").status, 3);
    assert_eq!(machine.systemctl("show daemon -p MainPID --value").output.trim(), "0");
}

#[test]
fn a_notifying_service_is_started_when_it_says_so() {
    let say = "/usr/bin/python3 -c 'import os, socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); [s.sendto(m, os.environ[\"NOTIFY_SOCKET\"]) for m in (b\"STATUS=well\", b\"READY=1\")]'";
    let machine = Machine::boot(&[
        (
            "slow.service",
            &format!(
                "[Service]\nType=notify\nExecStart=/bin/sh -c \"touch ROOT/begun; sleep 0.3; {}; exec sleep 1000\"\n[Install]\nWantedBy=multi-user.target\n",
                say.replace('"', "\\\"")
            ),
        ),
        ("silent.service", "[Service]\nType=notify\nExecStart=/bin/sleep 1000\nTimeoutStartSec=200ms\n"),
        ("quitter.service", "[Service]\nType=notify\nExecStart=/bin/true\n"),
    ]);
    let report = machine.wait_for_boot();
    assert!(report.succeeded && report.seconds >= 0.3, "{report:?} {}", machine.console());
    assert!(machine.systemctl("status slow").output.contains("Status: \"well\""));
    assert_eq!(machine.systemctl("start silent").status, 1);
    assert_eq!(machine.systemctl("show silent -p Result --value").output.trim(), "timeout");
    assert_eq!(machine.systemctl("start quitter").status, 1);
}

#[test]
fn no_end_of_a_quick_process_is_lost() {
    let lines = "ExecStart=/bin/true\n".repeat(100);
    let machine =
        Machine::boot(&[("quick.service", &format!("[Service]\nType=oneshot\n{lines}\n[Install]\nWantedBy=multi-user.target\n"))]);
    assert!(machine.wait_for_boot().succeeded, "{}", machine.console());
}

#[test]
fn a_missing_program_and_a_failing_requirement_fail_the_boot_and_are_named() {
    let machine = Machine::boot(&[
        ("broken.service", "[Service]\nExecStart=/no/such/program\n"),
        (
            "needy.service",
            "[Unit]\nRequires=broken.service\nAfter=broken.service\n[Service]\nExecStart=/bin/sleep 1000\n[Install]\nWantedBy=multi-user.target\n",
        ),
    ]);
    let report = machine.wait_for_boot();
    assert!(!report.succeeded);
    assert!(report.errors.iter().any(|error| error.contains("/no/such/program")), "{report:?}");
    assert!(report.errors.iter().any(|error| error.starts_with("needy.service") && error.contains("broken.service")), "{report:?}");
    assert!(machine.console().contains("boot failed:"), "{}", machine.console());
}

#[test]
fn what_has_no_effect_is_said_once() {
    let machine = Machine::boot(&[
        ("strict.service", "[Service]\nType=oneshot\nExecStart=/bin/true\nProtectSystem=strict\n[Install]\nWantedBy=multi-user.target\n"),
        ("tick.timer", "[Timer]\nOnBootSec=1\n[Install]\nWantedBy=multi-user.target\n"),
    ]);
    machine.wait_for_boot();
    machine.systemctl("start strict");
    let console = machine.console();
    assert_eq!(console.matches("strict.service: ProtectSystem=strict in [Service] has no effect here").count(), 1, "{console}");
    assert_eq!(console.matches("tick.timer: units of this kind have no effect here").count(), 1, "{console}");
}

#[test]
fn a_changed_unit_needs_a_daemon_reload() {
    let machine =
        Machine::boot(&[("echo.service", "[Service]\nType=oneshot\nExecStart=/bin/echo old\n[Install]\nWantedBy=multi-user.target\n")]);
    machine.wait_for_boot();
    machine.write_unit("echo.service", "[Service]\nType=oneshot\nExecStart=/bin/echo new\n");
    let answer = machine.systemctl("start echo");
    assert!(answer.errors.contains("daemon-reload"), "{}", answer.errors);
    assert!(!machine.console().contains(": new"), "{}", machine.console());
    machine.systemctl("daemon-reload");
    machine.systemctl("start echo");
    machine.wait_until("the new output is there", |machine| machine.console().contains(": new"));
}

#[test]
fn a_power_button_stops_units_in_reverse_order() {
    let unit = |name: &str, after: &str| {
        format!(
            "[Unit]\n{after}\n[Service]\nExecStart=/bin/sleep 1000\nExecStop=/bin/sh -c 'echo {name} >> ROOT/stopped'\n[Install]\nWantedBy=multi-user.target\n"
        )
    };
    let mut machine = Machine::boot(&[
        ("base.service", &unit("base", "")),
        ("middle.service", &unit("middle", "After=base.service")),
        ("top.service", &unit("top", "After=middle.service")),
    ]);
    machine.wait_for_boot();
    machine.terminate();
    assert_eq!(machine.wait_for_end(), POWERED_OFF);
    assert_eq!(machine.read("stopped"), "top\nmiddle\nbase\n");
}

#[test]
fn a_service_that_will_not_stop_is_killed_in_time_and_a_reboot_can_be_told_apart() {
    let mut machine = Machine::boot(&[(
        "stubborn.service",
        "[Service]\nExecStart=/bin/sh -c 'trap \"\" TERM; while :; do sleep 0.1; done'\nTimeoutStopSec=300ms\n[Install]\nWantedBy=multi-user.target\n",
    )]);
    machine.wait_for_boot();
    assert_eq!(machine.systemctl("reboot").status, 0);
    assert_eq!(machine.wait_for_end(), WANTS_REBOOT);
}

#[test]
fn what_is_enabled_for_another_target_starts_too_or_is_named() {
    let machine = Machine::boot(&[
        ("early.service", "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo early > ROOT/early'\n[Install]\nWantedBy=basic.target\n"),
        ("often.timer", "[Timer]\nOnBootSec=1\n[Install]\nWantedBy=timers.target\n"),
    ]);
    let report = machine.wait_for_boot();
    assert!(report.succeeded, "{}", machine.console());
    assert_eq!(machine.read("early"), "early\n");
    assert!(machine.console().contains("often.timer is enabled for timers.target"), "{}", machine.console());
}
