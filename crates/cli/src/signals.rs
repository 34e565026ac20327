//! Ctrl-C and the termination signal.

use std::io;

/// The name of SIGTERM.
pub(crate) const TERMINATED: &str = "Terminated";

/// Receives the signals that stop a command. A signal that comes while nothing waits for it is kept.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(windows)]
    ctrl_c: tokio::signal::windows::CtrlC,
}

impl Signals {
    #[cfg(unix)]
    pub(crate) fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    #[cfg(windows)]
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { ctrl_c: tokio::signal::windows::ctrl_c()? })
    }

    /// The name of the next signal.
    ///
    /// Cancellation safety: a signal that was not returned is kept.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "Ctrl-C",
            _ = self.terminate.recv() => TERMINATED,
        }
    }

    /// The name of the next signal.
    ///
    /// Cancellation safety: a signal that was not returned is kept.
    #[cfg(windows)]
    pub(crate) async fn next(&mut self) -> &'static str {
        self.ctrl_c.recv().await;
        "Ctrl-C"
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn signal_that_came_before_the_wait_is_not_lost() {
        let mut signals = Signals::new().unwrap();
        let sent =
            std::process::Command::new("kill").args(["-TERM", &std::process::id().to_string()]).status();
        assert!(sent.unwrap().success());
        assert_eq!(signals.next().await, "Terminated");
    }
}
