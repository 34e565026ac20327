//! Why a command did not do what was asked.

use std::io::{self, Write};
use std::process::ExitCode;

/// What to tell the person, and with which status to exit.
#[derive(Debug)]
pub(crate) struct Failure {
    /// `None`: everything was said already, or nobody listens.
    message: Option<String>,
    code: u8,
}

/// What clap exits with.
const USAGE: u8 = 2;
/// What shells report for a program that was stopped by Ctrl-C.
const STOPPED: u8 = 130;

impl Failure {
    /// Something failed. The message says what, about which thing, and what to do.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), code: 1 }
    }

    /// The command line is not understood.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), code: USAGE }
    }

    /// Something failed, and the person has read about it.
    pub(crate) fn told() -> Self {
        Self { message: None, code: 1 }
    }

    /// The person stopped it.
    pub(crate) fn stopped() -> Self {
        Self { message: None, code: STOPPED }
    }

    /// Prints the message and gives the status.
    pub(crate) fn report(self) -> ExitCode {
        if let Some(message) = self.message {
            // Where even this cannot be written, the status still tells.
            let _ = writeln!(io::stderr(), "error: {message}");
        }
        ExitCode::from(self.code)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // `outlast instance list | head`: whoever read has enough.
            io::ErrorKind::BrokenPipe => Self { message: None, code: 1 },
            _ => Self::new(error.to_string()),
        }
    }
}

impl From<outlast::client::ClientError> for Failure {
    fn from(error: outlast::client::ClientError) -> Self {
        Self::new(error.to_string())
    }
}

#[cfg(test)]
impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message.as_deref().unwrap_or("(told)"))
    }
}
