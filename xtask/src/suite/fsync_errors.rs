//! Runs the store's fsync example on a disk that cannot always sync: `strace` makes every seventh sync fail.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Outcome, Tally};
use crate::{installed, process};

/// The fifth sync of each thread, and every seventh after it. SQLite uses one call or the other.
const WHEN: &str = "5+7";

pub(super) fn run() -> Result<Outcome, String> {
    let again = "`cargo xtask test --only fsync-errors`";
    if let Err(reason) = installed::find("strace", again) {
        return Ok(Outcome::Lacking(reason));
    }
    if !installed::succeeds("strace", &["-f", "-o", "/dev/null", "true"]) {
        return Ok(Outcome::Skipped(format!(
            "strace may not trace here: run `strace true` to see why (a container needs `--cap-add SYS_PTRACE`), \
             then {again}"
        )));
    }
    let folder = Folder::create()?;
    let mut tally = Tally::default();
    // Makes the store: opening an existing one needs no sync that could fail.
    check(&mut tally, &[], &folder.0, &[])?;
    let log = folder.0.join("strace.log");
    let traced = strace(&log);
    let summary = check(&mut tally, &traced, &folder.0, &["--expect-failures"])?;
    let text = fs::read_to_string(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let (failed_syncs, failed_calls) = (failed_syncs(&text), number(&summary, "failed"));
    // Each of these calls syncs the log of the store once, and nothing else does.
    let name = format!("{failed_syncs} syncs failed, but {failed_calls:?} calls said so");
    tally.check(name, failed_syncs > 0 && failed_calls == Some(failed_syncs));
    check(&mut tally, &traced, &folder.0, &["--expect-failures", "--small-log"])?;
    Ok(Outcome::Ran(tally))
}

/// Runs the example, perhaps under a tracer; returns its last line.
fn check(tally: &mut Tally, tracer: &[String], folder: &Path, flags: &[&str]) -> Result<String, String> {
    let mut args = vec!["run".to_string()];
    if !tracer.is_empty() {
        args.extend(["--config".to_string(), format!("target.'cfg(all())'.runner={tracer:?}")]);
    }
    args.extend(["-q", "-p", "outlast-sqlite", "--example", "fsync_errors", "--"].map(str::to_string));
    args.push(folder.display().to_string());
    args.extend(flags.iter().map(ToString::to_string));
    let mut last = String::new();
    let status = process::stream(process::cargo(&args), |line| last = line.to_string())?;
    tally.check(format!("fsync_errors {}: {last}", flags.join(" ")), status.success());
    Ok(last)
}

/// `-y` shows which file a sync was for.
fn strace(log: &Path) -> Vec<String> {
    let inject = |call: &str| format!("inject={call}:error=EIO:when={WHEN}");
    let mut call = ["strace", "-f", "-y", "-e", "trace=fsync,fdatasync", "-o"].map(str::to_string).to_vec();
    call.extend([log.display().to_string(), "-e".to_string(), inject("fsync")]);
    call.extend(["-e".to_string(), inject("fdatasync")]);
    call
}

/// Failed syncs of the store's log, up to the file that the example syncs after its calls.
fn failed_syncs(log: &str) -> usize {
    let calls = log.lines().take_while(|line| !line.contains("/calls-end>"));
    calls.filter(|line| line.contains("store.db-wal>") && line.contains("(INJECTED)")).count()
}

/// A number of the example's last line.
fn number(summary: &str, name: &str) -> Option<usize> {
    summary.split(' ').find_map(|part| part.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

/// A folder for the store, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn create() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("outlast-fsync-errors-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_syncs_of_the_log_are_counted_up_to_the_end_of_the_calls() {
        let log = "7 fsync(4</t/store.db-wal>) = 0
7 fsync(4</t/store.db-wal>) = -1 EIO (Input/output error) (INJECTED)
7 fsync(3</t/store.db>) = -1 EIO (Input/output error) (INJECTED)
7 fsync(4</t/store.db-wal>) = -1 EIO (Input/output error) (INJECTED)
6 fsync(9</t/calls-end>) = 0
7 fsync(4</t/store.db-wal>) = -1 EIO (Input/output error) (INJECTED)";
        assert_eq!(failed_syncs(log), 2);
    }

    #[test]
    fn the_summary_is_read() {
        let line = "acknowledged=67 failed=13 reopened=13 missing=0";
        assert_eq!(number(line, "failed"), Some(13));
        assert_eq!(number("error: could not compile", "failed"), None);
    }
}
