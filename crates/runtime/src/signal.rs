//! Stopping a runtime when the process is asked to end.

use crate::Runtime;
use std::io;
use std::sync::Arc;
use std::time::Duration;

impl Runtime {
    /// Runs until the process gets SIGTERM or SIGINT (Ctrl-C; on Windows Ctrl-C only), and then drains: the runtime fetches no
    /// more, running turns and activities may finish within `grace`, and turns and activities that still run then are given back
    /// without counting a delivery, so that another process continues them immediately. Returns the name of the signal. A second
    /// signal ends the drain like [`Runtime::shutdown`] with `Some(0)`: leases of aborted work expire.
    ///
    /// systemd, Docker and Kubernetes send SIGTERM, wait, and then kill the process: set their wait some seconds longer than `grace`.
    ///
    /// The handlers of the signals are installed by the call itself, before the future is polled.
    ///
    /// Cancellation safety: when the future is dropped before a signal, the runtime runs on, and signals do not end the process any
    /// more.
    ///
    /// # Errors
    ///
    /// If the handlers of the signals cannot be installed. The runtime runs on.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn run_until_signal(
        self: Arc<Self>,
        grace: Duration,
    ) -> impl Future<Output = io::Result<&'static str>> + Send {
        let signals = Signals::install();
        async move {
            let mut signals = signals?;
            let signal = signals.next().await;
            tracing::info!(target: "duroxide::runtime", signal, ?grace, "the runtime drains");
            let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
            tokio::select! {
                () = Arc::clone(&self).shutdown(Some(grace_ms)) => {}
                _ = signals.next() => self.shutdown(Some(0)).await,
            }
            Ok(signal)
        }
    }
}

/// The signals that ask a process to end.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn install() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn install() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> &'static str {
        // Without a handler no signal arrives, and the process ends as usual.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "Ctrl-C"
    }
}
