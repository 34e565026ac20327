//! The failure of a command.

use std::io::{self, Write};
use std::process::ExitCode;

/// The message for the user, and the exit status.
#[derive(Debug)]
pub(crate) struct Failure {
    /// `None` if the message was printed already, or the reader has closed the pipe.
    message: Option<String>,
    code: u8,
}

/// The exit status of clap.
const USAGE: u8 = 2;
/// The exit status for an instance or execution that does not exist.
const NOT_FOUND: u8 = 3;
/// The exit status of `check` for a program that breaks instances.
const BREAKS_INSTANCES: u8 = 3;
/// The exit status of a wait that timed out.
const TIMEOUT: u8 = 4;
/// The exit status of a wait for an instance that failed.
const INSTANCE_FAILED: u8 = 5;
/// The exit status of a command that was refused, and changed nothing.
const REFUSED: u8 = 6;
/// The exit status for a store that cannot be reached, is locked, or was written by a newer release.
const UNAVAILABLE: u8 = 7;
/// The exit status that shells report for a program that was stopped by Ctrl-C.
const STOPPED: u8 = 130;

impl Failure {
    /// The command failed. The message says what failed, for which instance or store, and what to do.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), code: 1 }
    }

    /// The command line is invalid.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), code: USAGE }
    }

    /// The instance or execution does not exist.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), code: NOT_FOUND }
    }

    /// The wait timed out.
    pub(crate) fn timeout(message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), code: TIMEOUT }
    }

    /// The awaited instance failed, which is printed.
    pub(crate) fn instance_failed() -> Self {
        Self { message: None, code: INSTANCE_FAILED }
    }

    /// The command was refused, and changed nothing.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), code: REFUSED }
    }

    /// The store cannot be reached, is locked, or was written by a newer release: the same command may work later or elsewhere.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), code: UNAVAILABLE }
    }

    /// The checked program breaks instances, which the report shows.
    pub(crate) fn breaks_instances() -> Self {
        Self { message: None, code: BREAKS_INSTANCES }
    }

    /// The command failed and has printed the reason.
    pub(crate) fn reported() -> Self {
        Self { message: None, code: 1 }
    }

    /// The user stopped the command.
    pub(crate) fn stopped() -> Self {
        Self { message: None, code: STOPPED }
    }

    /// A failure after a change that was made: its sentence stands before the message. The exit status does not tell that the same
    /// command may work later, because a repetition would make the change twice.
    pub(crate) fn after(self, effect: &str) -> Self {
        let message =
            self.message.map_or_else(|| effect.to_string(), |message| format!("{effect}: {message}"));
        Self::new(message)
    }

    /// Whether the store could not be reached or was locked: the same call may work later.
    pub(crate) fn is_unavailable(&self) -> bool {
        self.code == UNAVAILABLE
    }

    /// The message without the exit status.
    #[cfg(feature = "tui")]
    pub(crate) fn into_message(self) -> String {
        self.message.unwrap_or_default()
    }

    /// Prints the message and returns the exit status.
    pub(crate) fn report(self) -> ExitCode {
        if let Some(message) = self.message {
            // If the message cannot be written, the exit status still reports the failure.
            let _ = writeln!(io::stderr(), "error: {message}");
        }
        ExitCode::from(self.code)
    }
}

impl From<outlast::author::InstanceError> for Failure {
    fn from(error: outlast::author::InstanceError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // `outlast instance list | head`: the reader has closed the pipe.
            io::ErrorKind::BrokenPipe => Self { message: None, code: 1 },
            _ => Self::new(error.to_string()),
        }
    }
}

impl From<outlast::client::ClientError> for Failure {
    fn from(error: outlast::client::ClientError) -> Self {
        match &error {
            outlast::client::ClientError::Provider(failed) if failed.is_retryable() => {
                Self::unavailable(error.to_string())
            }
            _ => Self::new(error.to_string()),
        }
    }
}

impl From<outlast::providers::ProviderError> for Failure {
    fn from(error: outlast::providers::ProviderError) -> Self {
        match error.is_retryable() {
            true => Self::unavailable(error.to_string()),
            false => Self::new(error.to_string()),
        }
    }
}

#[cfg(test)]
impl Failure {
    /// The exit status.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }
}

#[cfg(test)]
impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message.as_deref().unwrap_or("(told)"))
    }
}
