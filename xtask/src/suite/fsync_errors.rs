//! Runs the example `fsync_errors` of the SQLite store while `strace` makes every seventh sync fail.

use std::path::Path;
use std::process::Command;

use outlast_toolkit::{files, installed, process};

use super::Tally;
use super::programs::{self, Program};

/// The fifth sync of each thread fails, and every seventh sync after it.
const WHEN: &str = "5+7";

/// Runs the example without faults, then with failing syncs, and compares the failed syncs with the failed calls.
pub(super) fn run() -> Result<Tally, String> {
    let again = "`cargo xtask test --only fsync-errors`";
    if let Err(reason) = installed::find("strace", again) {
        return Ok(Tally::lacking(reason));
    }
    if !installed::succeeds("strace", &["-f", "-o", "/dev/null", "true"]) {
        return Ok(Tally::skipped(&format!(
            "strace may not trace here: run `strace true` to see why (a container needs `--cap-add SYS_PTRACE`), \
             then {again}"
        )));
    }
    let mut examples = programs::examples()?.into_iter();
    let example = examples.find(|example| example.name == "fsync_errors");
    let example = example.ok_or("the workspace has no example `fsync_errors`")?;
    let folder = tempfile::tempdir().map_err(|error| format!("a folder for the store: {error}"))?;
    let folder = folder.path();
    let mut tally = Tally::default();
    // The first run creates the store, because the creation of a store cannot survive a failed sync.
    check(&mut tally, example.command(), folder, &[])?;
    let log = folder.join("strace.log");
    let summary = check(&mut tally, strace(&log, &example), folder, &["--expect-failures"])?;
    let (failed_syncs, failed_calls) = (failed_syncs(&files::read(&log)?), number(&summary, "failed"));
    // Each call syncs the write-ahead log once, and no other code syncs it.
    let name = format!("{failed_syncs} syncs failed, but {failed_calls:?} calls reported an error");
    tally.check(name, failed_syncs > 0 && failed_calls == Some(failed_syncs));
    check(&mut tally, strace(&log, &example), folder, &["--expect-failures", "--small-log"])?;
    Ok(tally)
}

/// Runs the example and returns its last line.
fn check(tally: &mut Tally, mut command: Command, folder: &Path, flags: &[&str]) -> Result<String, String> {
    command.arg(folder).args(flags);
    let mut last = String::new();
    let status = process::stream(command, |line| last = line.to_string())?;
    tally.check(format!("fsync_errors {}: {last}", flags.join(" ")), status.success());
    Ok(last)
}

/// The example under `strace`. `-y` makes the log show the file of each sync.
fn strace(log: &Path, example: &Program) -> Command {
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-e", "trace=fsync,fdatasync", "-o"]).arg(log);
    for call in ["fsync", "fdatasync"] {
        command.args(["-e", &format!("inject={call}:error=EIO:when={WHEN}")]);
    }
    command.arg(&example.path).current_dir(&example.folder);
    command
}

/// Counts the failed syncs of the write-ahead log, up to the sync of the file that marks the end of the calls.
fn failed_syncs(log: &str) -> usize {
    let calls = log.lines().take_while(|line| !line.contains("/calls-end>"));
    calls.filter(|line| line.contains("store.db-wal>") && line.contains("(INJECTED)")).count()
}

/// A number in the example's last line.
fn number(summary: &str, name: &str) -> Option<usize> {
    summary.split(' ').find_map(|part| part.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_syncs_of_the_log_are_counted_up_to_the_end_of_the_calls() {
        let failed = "7 fsync(4</t/store.db-wal>) = -1 EIO (Input/output error) (INJECTED)";
        let other = "7 fsync(4</t/store.db-wal>) = 0\n7 fsync(3</t/store.db>) = -1 EIO (INJECTED)";
        let log = format!("{other}\n{failed}\n{failed}\n6 fsync(9</t/calls-end>) = 0\n{failed}");
        assert_eq!(failed_syncs(&log), 2);
    }

    #[test]
    fn counts_are_read_from_the_summary() {
        let line = "acknowledged=67 failed=13 reopened=13 missing=0";
        assert_eq!(number(line, "failed"), Some(13));
        assert_eq!(number("error: could not compile", "failed"), None);
    }
}
