//! Running the command.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// The command, without what this machine's environment says about terminals.
pub(crate) fn outlast<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outlast"));
    command.args(args).stdin(Stdio::null()).env_remove("NO_COLOR");
    for variable in ["OUTLAST_STORE", "PGPASSWORD", "PGPASSFILE"] {
        command.env_remove(variable);
    }
    command
}

/// What a command that has ended said.
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
    /// It worked, and said nothing about errors.
    pub(crate) fn fine(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{}", self.out);
        self.out
    }

    /// It failed, and this is why.
    pub(crate) fn failed(self) -> String {
        assert_eq!(self.code, Some(1), "{self:?}");
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

/// Looks until it is so. Gives up after half a minute.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..15_000 {
        if is_so() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
    panic!("waited in vain until {what}");
}

pub(crate) fn ledger_lines(dir: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(dir.join("ledger.jsonl")).unwrap_or_default();
    text.lines().map(str::to_string).collect()
}
