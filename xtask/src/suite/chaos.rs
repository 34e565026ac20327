//! Kills at least thirty worker processes on SQLite and on PostgreSQL, and counts the checks of the stored results. The tests of
//! `outlast-chaos` have a shorter run on Cosmos DB.

use outlast_toolkit::postgres::Cluster;
use outlast_toolkit::{installed, process};

use super::{Outcome, Tally, programs};
use crate::chaos;

/// Enough kills to interrupt every step of a commit.
const CALLS: &[&str] =
    &["sqlite --kills 32 --pace 500 --minutes 1", "postgres --kills 32 --pace 500 --minutes 1"];

pub(super) fn run() -> Result<Outcome, String> {
    let program = programs::chaos()?;
    let mut tally = Tally::default();
    // A phase on SQLite traces its workers with strace, and reports a skip without it.
    if let Err(reason) = installed::find("strace", "`cargo xtask test --only chaos`") {
        tally.lack(reason);
    }
    for call in CALLS {
        let args: Vec<String> = call.split(' ').map(str::to_string).collect();
        let server = match chaos::server(&args) {
            Ok(server) => server,
            Err(reason) => {
                tally.lack(format!("{}: {reason}", args[0]));
                continue;
            }
        };
        let mut command = program.command();
        command.current_dir(process::root()).envs(server.iter().flat_map(Cluster::variables));
        chaos::add_args(&mut command, &args);
        let mut output = Output::default();
        let status = process::stream(command, |line| output.line(line))?;
        tally.add(output.finish(&format!("cargo xtask chaos {call}"), status.success()));
    }
    Ok(Outcome::Ran(tally))
}

/// Reads the output of the supervisor.
#[derive(Default)]
struct Output {
    tally: Tally,
    has_ended: bool,
}

impl Output {
    fn line(&mut self, line: &str) {
        if let Some(failed) = line.strip_prefix("  FAILED  ") {
            self.tally.fail(failed);
        } else if let Some((phase, reason)) =
            line.strip_prefix("  skipped ").and_then(|rest| rest.split_once(": "))
        {
            self.tally.skip(1, &format!("{phase}: {reason}"));
        } else if let Some((passed, _)) =
            line.strip_prefix("chaos: ").and_then(|rest| rest.split_once(" checks passed"))
        {
            self.tally.passed += passed.parse().unwrap_or(0);
            self.has_ended = true;
        }
    }

    fn finish(mut self, call: &str, success: bool) -> Tally {
        if !self.has_ended || (!success && self.tally.failed == 0) {
            self.tally.fail(call);
        }
        self.tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, success: bool) -> Tally {
        let mut output = Output::default();
        text.lines().for_each(|line| output.line(line));
        output.finish("call", success)
    }

    #[test]
    fn checks_are_counted_and_failures_named() {
        let good = read("  ok      0 lost\nchaos: 17 checks passed, 0 failed\n", true);
        assert_eq!((good.passed, good.failed), (17, 0));
        let text = "  FAILED  0 lost: 2\n            'job-1'\nchaos: 16 checks passed, 1 failed\n";
        let bad = read(text, false);
        assert_eq!((bad.passed, bad.failures), (16, vec!["0 lost: 2".to_string()]));
    }

    #[test]
    fn a_skipped_phase_is_named() {
        let tally = read("  skipped disk-full: not root\nchaos: 3 checks passed, 0 failed\n", true);
        assert_eq!((tally.passed, tally.skipped.get("disk-full: not root")), (3, Some(&1)));
    }

    #[test]
    fn a_supervisor_that_does_not_run_is_a_failure() {
        assert_eq!(read("error: could not compile", false).failures, ["call"]);
        assert_eq!(read("", true).failures, ["call"]);
    }
}
