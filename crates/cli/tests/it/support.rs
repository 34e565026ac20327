//! Runs the command.

use crate::program::LONG;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// The command, without the environment variables about terminals and stores.
pub(crate) fn outlast<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outlast"));
    command.args(args).stdin(Stdio::null()).env_remove("NO_COLOR");
    // No profile of the user of this machine.
    command.env("XDG_CONFIG_HOME", "/nonexistent").env_remove("OUTLAST_PROFILE");
    let names = [
        "COSMOS_DATABASE",
        "COSMOS_ENDPOINT",
        "COSMOS_KEY",
        "OUTLAST_STORE",
        "PGPASSWORD",
        "PGPASSFILE",
        "SSH_CONNECTION",
    ];
    for variable in names {
        command.env_remove(variable);
    }
    command
}

/// The output of a command that has ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Said {
    said(outlast(args).output().unwrap())
}

pub(crate) fn said(output: Output) -> Said {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

impl Said {
    /// Checks success and an empty standard error, and returns standard output.
    pub(crate) fn fine(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{}", self.out);
        self.out
    }

    /// Checks failure, and returns standard error.
    pub(crate) fn failed(self) -> String {
        assert_eq!(self.code, Some(1), "{self:?}");
        self.err
    }

    /// Checks the exit status of an unknown instance, and returns standard error.
    pub(crate) fn not_found(self) -> String {
        assert_eq!((self.code, self.out.as_str()), (Some(3), ""), "{self:?}");
        self.err
    }

    pub(crate) fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.fine()).unwrap()
    }
}

/// The arguments of a small, fast demo.
pub(crate) fn demo<'a>(dir: &'a Path, more: &[&'a str]) -> Vec<&'a OsStr> {
    let mut args: Vec<&OsStr> = vec![OsStr::new("demo"), OsStr::new("--dir"), dir.as_os_str()];
    args.extend(more.iter().map(|more| OsStr::new(*more)));
    args
}

/// Waits until the condition holds, at most half a minute.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..15_000 {
        if is_so() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
    panic!("timed out waiting until {what}");
}

pub(crate) fn ledger_lines(dir: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(dir.join("ledger.jsonl")).unwrap_or_default();
    text.lines().map(str::to_string).collect()
}

/// Changes a SQLite file as a disk error or another program would.
pub(crate) fn damage(path: &Path, statement: &str) {
    let file = rusqlite::Connection::open(path).unwrap();
    file.busy_timeout(LONG).unwrap();
    assert!(file.execute(statement, ()).unwrap() > 0, "{statement} changes a row");
}
