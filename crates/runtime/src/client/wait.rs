//! Status, and waiting for it to change.

use super::{Client, ClientError};
use crate::OrchestrationStatus;
use crate::uncounted::counted;
use outlast_model::ExecutionStatus;
use outlast_provider::{InstanceOutcome, Interest};
use serde::de::DeserializeOwned;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

impl Client {
    /// How an instance stands. One whose start is queued is not there yet: `NotFound`.
    ///
    /// Cancellation safety: it only reads.
    pub async fn get_orchestration_status(&self, instance: &str) -> Result<OrchestrationStatus, ClientError> {
        Ok(OrchestrationStatus::of(self.store.read_outcome(instance).await?))
    }

    /// Waits until an instance has completed or failed, however often it continues as new meanwhile. An instance that
    /// does not exist is waited for as well. With a timeout of zero it looks once.
    ///
    /// In the process that runs the instance this returns as soon as the last turn is stored; a commit of another
    /// process is noticed within a quarter of a second.
    ///
    /// Cancellation safety: it only reads.
    ///
    /// # Errors
    ///
    /// [`ClientError::Timeout`] when the time is over; a store's error at once.
    pub async fn wait_for_orchestration(
        &self,
        instance: &str,
        timeout: Duration,
    ) -> Result<OrchestrationStatus, ClientError> {
        let is_missing = AtomicBool::new(false);
        let look = |told: Option<InstanceOutcome>| async {
            let status = match told {
                Some(outcome) => OrchestrationStatus::of(Some(outcome)),
                None => self.get_orchestration_status(instance).await?,
            };
            is_missing.store(status == OrchestrationStatus::NotFound, Relaxed);
            Ok(Some(status).filter(OrchestrationStatus::is_terminal))
        };
        let ended = self.wait_until(instance, Interest::Ended, Rhythm::Growing, timeout, look).await;
        // The error has no room for it. A look without a wait asks whether the instance is there.
        if matches!(ended, Err(ClientError::Timeout)) && !timeout.is_zero() && is_missing.load(Relaxed) {
            tracing::warn!(
                target: "duroxide::client",
                instance_id = instance,
                "the wait timed out, and the instance does not exist: was it started under this id, and does a runtime have its orchestration?"
            );
        }
        ended
    }

    /// [`Client::wait_for_orchestration`] with the output as a value; the inner error is the instance's failure as text.
    ///
    /// Cancellation safety: it only reads.
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
            // The wait returns nothing else.
            OrchestrationStatus::NotFound | OrchestrationStatus::Running { .. } => Err(ClientError::Timeout),
        }
    }

    /// Waits until the custom status has a version above `last_seen_version`, or the instance has completed or failed.
    /// It looks every `poll_interval`, and where the store can tell of commits, at every commit. With a timeout of zero
    /// it does not look at all.
    ///
    /// Cancellation safety: it only reads.
    ///
    /// # Errors
    ///
    /// [`ClientError::Timeout`] when the time is over; a store's error at once.
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
        let is_news = |outcome: &InstanceOutcome| {
            outcome.custom_status_version > last_seen_version
                || outcome.execution_status().is_some_and(ExecutionStatus::ends_instance)
        };
        let look = |told: Option<InstanceOutcome>| async {
            let outcome = match told {
                Some(outcome) => Some(outcome),
                None => self.store.read_outcome(instance).await?,
            };
            Ok(outcome.filter(is_news).map(|outcome| OrchestrationStatus::of(Some(outcome))))
        };
        self.wait_until(instance, Interest::Any, Rhythm::Every(poll_interval), timeout, look).await
    }

    /// Looks until there is something to see or the time is over; the last look is at the deadline. A look may have been told
    /// what it would see.
    pub(super) async fn wait_until<T, Look>(
        &self,
        instance: &str,
        interest: Interest,
        rhythm: Rhythm,
        timeout: Duration,
        look: impl Fn(Option<InstanceOutcome>) -> Look,
    ) -> Result<T, ClientError>
    where
        Look: Future<Output = Result<Option<T>, ClientError>>,
    {
        // A sleep that is made once counts from here, follows a paused clock, and saturates.
        let mut deadline = pin!(tokio::time::sleep(timeout));
        let mut is_over = timeout.is_zero();
        let mut looks = 0_u32;
        let mut told = None;
        loop {
            // The watch comes first, so that no commit falls between the look and the wait.
            let watch = if is_over { None } else { self.store.watch_instance(instance, interest) };
            if let Some(seen) = look(told.take()).await? {
                if !is_over {
                    tokio::select! {
                        biased;
                        () = counted(self.store_id, instance) => {}
                        () = deadline.as_mut() => {}
                        () = tokio::time::sleep(LONGEST_COUNT) => {}
                    }
                }
                return Ok(seen);
            }
            if is_over {
                return Err(ClientError::Timeout);
            }
            let pause = tokio::time::sleep(rhythm.pause(looks, watch.is_some()));
            looks = looks.saturating_add(1);
            tokio::select! {
                biased;
                () = deadline.as_mut() => is_over = true,
                outcome = watch.unwrap_or_else(|| Box::pin(std::future::pending())) => told = outcome,
                () = pause => {}
            }
        }
    }
}

/// How long to wait between two looks.
#[derive(Clone, Copy)]
pub(super) enum Rhythm {
    /// Often at first, then less so. Where the store tells of its commits, only now and then.
    Growing,
    /// As the caller says.
    Every(Duration),
}

/// How long to wait at most for a runtime of this process to count what was seen. It only takes the answer to a commit that the
/// store has made; where that answer is lost, nobody waits for it for long.
const LONGEST_COUNT: Duration = Duration::from_secs(1);

/// How often to look all the same, since another process may have committed.
const WATCHED_PAUSE: Duration = Duration::from_millis(250);

impl Rhythm {
    fn pause(self, looks: u32, is_watched: bool) -> Duration {
        match self {
            Self::Growing if is_watched => WATCHED_PAUSE,
            Self::Growing => Duration::from_millis((5 << looks.min(5)).min(100)),
            // Without any pause nobody else would get to run.
            Self::Every(interval) => interval.max(Duration::from_millis(1)),
        }
    }
}
