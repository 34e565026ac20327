//! Kills at least thirty worker processes on SQLite and on PostgreSQL, and counts the checks of the stored results. The tests of
//! `outlast-chaos` have a shorter run on Cosmos DB.

use outlast_toolkit::postgres::Cluster;
use outlast_toolkit::{installed, process};

use super::tally::Said;
use super::{Tally, programs};
use crate::chaos;

/// Enough kills to interrupt every step of a commit.
const CALLS: &[&str] =
    &["sqlite --kills 32 --pace 500 --minutes 1", "postgres --kills 32 --pace 500 --minutes 1"];

pub(super) fn run() -> Result<Tally, String> {
    let program = programs::chaos()?;
    let mut tally = Tally::default();
    // A phase on SQLite traces its workers with strace, and reports a skip without it.
    if let Err(reason) = installed::find("strace", "`cargo xtask test --only chaos`") {
        tally.lack(reason);
    }
    for call in CALLS {
        let args: Vec<String> = call.split(' ').map(str::to_string).collect();
        match chaos::server(&args) {
            Ok(server) => {
                let mut command = program.command();
                command.current_dir(process::root()).envs(server.iter().flat_map(Cluster::variables));
                chaos::add_args(&mut command, &args);
                tally.add(Tally::of(command, &format!("cargo xtask chaos {call}"), read)?);
            }
            Err(reason) => tally.lack(format!("{}: {reason}", args[0])),
        }
    }
    Ok(tally)
}

/// Reads a line of the supervisor.
fn read(line: &str) -> Option<Said> {
    if let Some(failed) = line.strip_prefix("  FAILED  ") {
        return Some(Said::Failed(failed.to_string()));
    }
    if let Some(skipped) = line.strip_prefix("  skipped ") {
        return Some(Said::Skipped(skipped.to_string()));
    }
    let (passed, _) = line.strip_prefix("chaos: ")?.split_once(" checks passed")?;
    Some(Said::Ended { passed: passed.parse().ok()?, runs: 0, ignored: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::tally::counted;

    #[test]
    fn checks_are_counted_and_failures_and_skipped_phases_named() {
        let good = "  ok      0 lost\n  skipped disk-full: not root\nchaos: 17 checks passed, 0 failed\n";
        let good = counted(good, true, read);
        assert_eq!((good.counts(), good.skipped["disk-full: not root"]), ((17, 0, 1), 1));
        let bad = "  FAILED  0 lost: 2\n            'job-1'\nchaos: 16 checks passed, 1 failed\n";
        let bad = counted(bad, false, read);
        assert_eq!((bad.passed, bad.failures), (16, vec!["0 lost: 2".to_string()]));
    }
}
