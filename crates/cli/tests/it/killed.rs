//! The demo loses no order when it is killed.

use crate::support::{Running, demo, ledger_lines, outlast, run, wait_until};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const SIZE: [&str; 4] = ["--orders", "14", "--pace", "0.25"];
const SEED: u64 = 0x0074_1a57;

/// Kill times that are the same in every run of the test, as far as the machine allows.
struct Moments(u64);

impl Moments {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// The number of lines after the one in which the supervisor says that it has started. The workers of a killed supervisor may write
/// some lines before they notice its death.
fn lines_since_start(dir: &Path, supervisor: u32) -> usize {
    let started = format!("\"entry\":\"opened\",\"process\":{supervisor}}}");
    let lines = ledger_lines(dir);
    lines.iter().rposition(|line| line.ends_with(&started)).map_or(0, |at| lines.len() - 1 - at)
}

#[test]
fn the_demo_survives_ten_kills_at_random_times() {
    let dir = tempfile::tempdir().unwrap();
    let mut moments = Moments(SEED);
    for kill in 1..=10 {
        let mut running = Running::start(&mut outlast(demo(dir.path(), &SIZE)));
        let child = &mut running.child;
        // After this number of effects, plus some milliseconds that may fall into a commit, a sync, or between the two.
        let enough = 2 + usize::try_from(moments.below(8)).unwrap();
        wait_until("the ledger has grown", || {
            lines_since_start(dir.path(), child.id()) >= enough || child.try_wait().unwrap().is_some()
        });
        std::thread::park_timeout(Duration::from_millis(moments.below(20)));
        assert!(child.try_wait().unwrap().is_none(), "it ended before kill {kill}: make the batch larger");
        child.kill().unwrap();
        let (_, out) = running.end();
        assert_eq!(out.contains("of the last run, going on"), kill > 1, "{out}");
    }
    let out = run(demo(dir.path(), &SIZE)).fine();
    for part in ["of the last run, going on", "14 placed, 14 ended", "restarts    10 survived", "It holds"] {
        assert!(out.contains(part), "{part} in {out}");
    }
}

#[test]
fn the_demo_continues_after_a_termination_signal() {
    let dir = tempfile::tempdir().unwrap();
    for (signal, name) in [("-INT", "Ctrl-C"), ("-TERM", "Terminated")] {
        let mut running = Running::start(&mut outlast(demo(dir.path(), &SIZE)));
        let id = running.child.id();
        wait_until("it works", || lines_since_start(dir.path(), id) > 3);
        let killed = Command::new("kill").args([signal, &id.to_string()]).status().unwrap();
        assert!(killed.success());
        let (code, text) = running.end();
        assert_eq!(code, Some(130), "{text}");
        for part in [name, "Nothing is lost: start it again to go on"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
    let out = run(demo(dir.path(), &SIZE)).fine();
    assert!(out.contains("restarts    2 survived") && out.contains("It holds"), "{out}");
}

#[test]
fn a_second_demo_in_the_same_folder_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    // Kept until the end, which ends the first demo.
    let first = Running::start(&mut outlast(demo(dir.path(), &SIZE)));
    assert!(first.line().is_some());
    for more in [&SIZE[..], &["--fresh"]] {
        let error = run(demo(dir.path(), more)).failed();
        assert!(error.contains("another demo is running in this folder"), "{error}");
    }
}
