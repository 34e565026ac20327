//! The status of an instance, and waits for it to change.

use super::{Client, ClientError};
use crate::OrchestrationStatus;
use crate::local;
use crate::uncounted::wait_until_counted;
use outlast_model::ExecutionStatus;
use outlast_provider::{InstanceOutcome, Interest};
use serde::de::DeserializeOwned;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

impl Client {
    /// The status of an instance; `NotFound` until its first turn is committed.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn get_orchestration_status(&self, instance: &str) -> Result<OrchestrationStatus, ClientError> {
        Ok(OrchestrationStatus::of(self.store.read_outcome(instance).await?))
    }

    /// Waits until an instance has completed or failed. An execution that continues as new does not end the wait. Also waits for an
    /// instance that does not exist yet. With a timeout of zero it reads the status once.
    ///
    /// In the process that runs the instance the call returns as soon as the last turn is stored. The call notices a commit of
    /// another process within a quarter of a second.
    ///
    /// Cancellation safety: the call only reads.
    ///
    /// # Errors
    ///
    /// [`ClientError::Timeout`] after the timeout; an error of the store at once.
    pub async fn wait_for_orchestration(
        &self,
        instance: &str,
        timeout: Duration,
    ) -> Result<OrchestrationStatus, ClientError> {
        let is_missing = AtomicBool::new(false);
        let check = |watched: Option<InstanceOutcome>| async {
            let status = match watched {
                Some(outcome) => OrchestrationStatus::of(Some(outcome)),
                None => self.get_orchestration_status(instance).await?,
            };
            is_missing.store(status == OrchestrationStatus::NotFound, Relaxed);
            Ok(Some(status).filter(OrchestrationStatus::is_terminal))
        };
        let ended = self.wait_until(instance, Interest::Ended, PollInterval::Growing, timeout, check).await;
        // `ClientError::Timeout` has no field for a missing instance. With a timeout of zero the caller may only test whether the
        // instance exists, so the call logs no warning.
        if matches!(ended, Err(ClientError::Timeout)) && !timeout.is_zero() && is_missing.load(Relaxed) {
            tracing::warn!(
                target: "duroxide::client",
                instance_id = instance,
                "the wait timed out, and the instance does not exist: was it started under this id, and does a runtime have its orchestration?"
            );
        }
        ended
    }

    /// [`Client::wait_for_orchestration`] with a decoded output; the inner error is the message of the instance's failure.
    ///
    /// Cancellation safety: the call only reads.
    ///
    /// # Errors
    ///
    /// Also [`ClientError::InvalidInput`] when the output does not decode.
    pub async fn wait_for_orchestration_typed<Out: DeserializeOwned>(
        &self,
        instance: &str,
        timeout: Duration,
    ) -> Result<Result<Out, String>, ClientError> {
        match self.wait_for_orchestration(instance, timeout).await? {
            OrchestrationStatus::Completed { output, .. } => self
                .codec
                .decode(&output)
                .map(Ok)
                .map_err(|error| ClientError::invalid(format!("decode failed: {error}"))),
            OrchestrationStatus::Failed { details, .. } => Ok(Err(details.display_message())),
            // `wait_for_orchestration` returns terminal statuses only.
            OrchestrationStatus::NotFound | OrchestrationStatus::Running { .. } => Err(ClientError::Timeout),
        }
    }

    /// Waits until the custom status has a version above `last_seen_version`, or the instance has completed or failed.
    /// It reads the status every `poll_interval`, and also at every commit if the store supports watches. With a timeout of zero
    /// it returns `Timeout` without reading.
    ///
    /// Cancellation safety: the call only reads.
    ///
    /// # Errors
    ///
    /// [`ClientError::Timeout`] after the timeout; an error of the store at once.
    pub async fn wait_for_status_change(
        &self,
        instance: &str,
        last_seen_version: u64,
        poll_interval: Duration,
        timeout: Duration,
    ) -> Result<OrchestrationStatus, ClientError> {
        if timeout.is_zero() {
            return Err(ClientError::Timeout);
        }
        let has_changed = |outcome: &InstanceOutcome| {
            outcome.custom_status_version > last_seen_version
                || outcome.execution_status().is_some_and(ExecutionStatus::ends_instance)
        };
        let check = |watched: Option<InstanceOutcome>| async {
            let outcome = match watched {
                Some(outcome) => Some(outcome),
                None => self.store.read_outcome(instance).await?,
            };
            Ok(outcome.filter(has_changed).map(|outcome| OrchestrationStatus::of(Some(outcome))))
        };
        self.wait_until(instance, Interest::Any, PollInterval::Fixed(poll_interval), timeout, check).await
    }

    /// Calls `check` until it returns a value or the timeout is over; the last call is at the deadline. `check` gets the outcome
    /// that the watch returned, if any, and otherwise reads the store. Before a value is returned, the metrics of this process
    /// count the turn that the value is from, or [`LONGEST_COUNT`] passes.
    pub(super) async fn wait_until<T, Check>(
        &self,
        instance: &str,
        interest: Interest,
        poll_interval: PollInterval,
        timeout: Duration,
        check: impl Fn(Option<InstanceOutcome>) -> Check,
    ) -> Result<T, ClientError>
    where
        Check: Future<Output = Result<Option<T>, ClientError>>,
    {
        // One `sleep` for the whole wait: it starts here, follows a paused clock, and does not overflow.
        let mut deadline = pin!(tokio::time::sleep(timeout));
        let mut timed_out = timeout.is_zero();
        let mut checks = 0_u32;
        let mut watched = None;
        loop {
            // The watch is registered before the check, so that a commit between check and wait resolves it.
            let mut watch = if timed_out { None } else { self.store.watch_instance(instance, interest) };
            if let Some(commit) =
                watch.as_mut().filter(|_| checks == 0 && self.is_likely_to_go_on(instance, interest))
            {
                tokio::select! {
                    biased;
                    () = deadline.as_mut() => timed_out = true,
                    outcome = commit => {
                        watched = outcome;
                        watch = None;
                    }
                    () = tokio::time::sleep(WATCH_FIRST) => {}
                }
            }
            if let Some(value) = check(watched.take()).await? {
                if !timed_out {
                    tokio::select! {
                        biased;
                        () = wait_until_counted(self.store_id, instance) => {}
                        () = deadline.as_mut() => {}
                        () = tokio::time::sleep(LONGEST_COUNT) => {}
                    }
                }
                return Ok(value);
            }
            if timed_out {
                return Err(ClientError::Timeout);
            }
            let pause = tokio::time::sleep(poll_interval.pause(checks, watch.is_some()));
            checks = checks.saturating_add(1);
            tokio::select! {
                biased;
                () = deadline.as_mut() => timed_out = true,
                outcome = watch.unwrap_or_else(|| Box::pin(std::future::pending())) => watched = outcome,
                () = pause => {}
            }
        }
    }
}

impl Client {
    /// Whether a wait for the end of the instance would read that it runs, as far as this process knows: a runtime on the same
    /// store object holds it suspended.
    fn is_likely_to_go_on(&self, instance: &str, interest: Interest) -> bool {
        interest == Interest::Ended && local::holds_suspended(self.store_id, instance)
    }
}

/// How long a client awaits the watch of an instance that continues in this process before the client first reads the store. Most
/// waits for short instances end within this time without a read. The time is short because another process may have ended the
/// instance.
const WATCH_FIRST: Duration = Duration::from_millis(5);

/// The pause between two checks of a wait.
#[derive(Clone, Copy)]
pub(super) enum PollInterval {
    /// 5 ms, doubled with every check up to 100 ms; `WATCHED_PAUSE` if the store supports watches.
    Growing,
    Fixed(Duration),
}

/// The longest wait for a runtime of this process to count the turn that a check has read. The runtime only waits for the answer to
/// a commit that the store has made; this bound covers a lost answer.
const LONGEST_COUNT: Duration = Duration::from_secs(1);

/// The pause with a watch, which does not notice commits of other processes.
const WATCHED_PAUSE: Duration = Duration::from_millis(250);

impl PollInterval {
    fn pause(self, checks: u32, is_watched: bool) -> Duration {
        match self {
            Self::Growing if is_watched => WATCHED_PAUSE,
            Self::Growing => Duration::from_millis((5 << checks.min(5)).min(100)),
            // At least 1 ms, so that other tasks run.
            Self::Fixed(interval) => interval.max(Duration::from_millis(1)),
        }
    }
}
