//! Runs the command.

use crate::program::LONG;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
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

/// Runs the command to its end, which must come in time.
pub(crate) fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Said {
    ended(&mut outlast(args))
}

/// Runs a command to its end, which must come in time.
pub(crate) fn ended(command: &mut Command) -> Said {
    let mut running = Running::start(command.stderr(Stdio::piped()));
    let err = lines_of(running.child.stderr.take().unwrap());
    let (code, out) = running.end();
    Said { code, out, err: err.iter().collect() }
}

/// The longest time for which a process of a test may print nothing, and the longest time between its last line and its end.
const LONGEST: Duration = Duration::from_secs(180);

/// A process whose output is read with a limit. A test that fails ends it, and its children by their standard input.
pub(crate) struct Running {
    pub(crate) child: Child,
    lines: Receiver<String>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The next line with its end; `None` at the end of the output.
    pub(crate) fn line(&self) -> Option<String> {
        match self.lines.recv_timeout(LONGEST) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("the process printed nothing for {LONGEST:?}"),
        }
    }

    /// The exit status, and the rest of the output.
    pub(crate) fn end(&mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        while let Some(line) = self.line() {
            text.push_str(&line);
        }
        (self.code(), text)
    }

    /// The exit status of a process that ends.
    pub(crate) fn code(&mut self) -> Option<i32> {
        self.status().expect("the process ends in time").code()
    }

    /// The status of the process; `None` if it does not end in time.
    pub(crate) fn status(&mut self) -> Option<ExitStatus> {
        for _ in 0..LONGEST.as_millis() / 2 {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            std::thread::park_timeout(Duration::from_millis(2));
        }
        None
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines of a pipe with their ends. A thread reads them, so that the test can wait with a limit.
fn lines_of(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    let read = move || {
        let mut pipe = BufReader::new(pipe);
        let mut bytes = Vec::new();
        while pipe.read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0) {
            // A test that does not read the output any more has dropped the receiver. The process goes on.
            let _ = sender.send(String::from_utf8_lossy(&std::mem::take(&mut bytes)).into_owned());
        }
    };
    std::thread::Builder::new().spawn(read).unwrap();
    lines
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
