//! Pause and resume of instances.

use super::{Client, ClientError};
use outlast_model::defect::{self, Defect};
use outlast_model::{AuditEntry, AuditRecord, HeldCounts, HeldInstance, Hold, HoldKind};
use outlast_provider::{HoldOutcome, Interest, ProviderError, ReleaseOutcome};
use std::time::Duration;
use tokio::time::Instant;

const PAUSE: &str = "instance.pause";
const RESUME: &str = "instance.resume";
/// The operation in the error of a change that was made without a record.
const RECORD: &str = "record_change";
/// The longest wait for a running turn.
const LONGEST_TURN: Duration = Duration::from_secs(60);
/// The pause between two tries while a turn runs.
const TRY_AGAIN: Duration = Duration::from_millis(20);
/// The records that are read at once to find the record of a pause.
const RECORDS: usize = 500;

/// Pause and resume, each recorded in the audit of the store. A paused instance keeps its state; its messages wait in their order,
/// and activities that were scheduled run on. [`Client::cancel_instance`] releases a paused instance, so that it can end.
impl Client {
    /// Pauses an instance: no runtime runs a turn of it until [`Client::resume_instance`]. Waits for a running turn. Returns whether
    /// the instance was not held before. A call that repeats a pause, with its actor and reason, records the pause if the audit has no
    /// record of it.
    ///
    /// Cancellation safety: when the future is dropped, the instance is paused or not. A paused instance may lack its record in the
    /// audit, also after an error of the store. Repeat the call.
    ///
    /// # Errors
    ///
    /// [`ClientError::InstanceNotFound`]; [`ClientError::InvalidInput`] if the instance has ended or is being cancelled, or the store
    /// cannot hold instances; [`ClientError::Timeout`] if a turn runs for more than a minute.
    pub async fn pause_instance(
        &self,
        instance: &str,
        actor: &str,
        reason: &str,
    ) -> Result<bool, ClientError> {
        let hold = Hold { kind: HoldKind::Paused, actor: actor.to_string(), reason: reason.to_string() };
        self.hold(instance, &hold).await
    }

    /// Holds an instance when no turn of it runs, and records it.
    pub(super) async fn hold(&self, instance: &str, hold: &Hold) -> Result<bool, ClientError> {
        let give_up = Instant::now() + LONGEST_TURN;
        loop {
            let watch = self.store.watch_instance(instance, Interest::Any);
            match self.admin()?.hold_instance(instance, hold).await? {
                HoldOutcome::Held => break,
                HoldOutcome::AlreadyHeld => {
                    self.record_held(instance, hold).await?;
                    return Ok(false);
                }
                HoldOutcome::InTurn { .. } => {
                    if Instant::now() >= give_up {
                        return Err(ClientError::Timeout);
                    }
                    tokio::select! {
                        _ = watch.unwrap_or_else(|| Box::pin(std::future::pending())) => {}
                        () = tokio::time::sleep(TRY_AGAIN) => {}
                    }
                }
                HoldOutcome::NotFound => {
                    return Err(ClientError::InstanceNotFound { instance_id: instance.to_string() });
                }
                other => return Err(not_held(instance, other)),
            }
        }
        if !defect::is_on(Defect::PauseNotRecorded) {
            self.audit(PAUSE, instance, &hold.actor, &hold.reason).await?;
        }
        Ok(true)
    }

    /// Records the pause of an instance that the same call made before, unless the audit has the record.
    async fn record_held(&self, instance: &str, hold: &Hold) -> Result<(), ClientError> {
        if hold.kind != HoldKind::Paused {
            return Ok(());
        }
        match self.held_instance(instance).await? {
            Some(held) if held.hold == *hold => {
                self.audit_once(PAUSE, instance, &hold.actor, &hold.reason, held.held_at_ms).await
            }
            _ => Ok(()),
        }
    }

    /// Resumes an instance that is paused or parked: its messages are delivered, in their order. Returns whether it was held.
    ///
    /// Cancellation safety: when the future is dropped, the instance is resumed or not. A resumed instance may lack its record in the
    /// audit, also after an error of the store.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidInput`] if the instance is held because its orchestration is paused: see
    /// [`Client::resume_orchestration`].
    pub async fn resume_instance(
        &self,
        instance: &str,
        actor: &str,
        reason: &str,
    ) -> Result<bool, ClientError> {
        let held = self.held_instance(instance).await?;
        if held.is_some_and(|held| held.hold.kind == HoldKind::OrchestrationPaused)
            && let Some(orchestration) = self.orchestration_of(instance).await?
            && self.is_paused(&orchestration).await?
        {
            return Err(ClientError::invalid(format!(
                "instance '{instance}' is held because its orchestration '{orchestration}' is paused: resume the orchestration"
            )));
        }
        self.release(instance, actor, reason).await
    }

    /// Ends the hold of an instance, and records it.
    pub(super) async fn release(
        &self,
        instance: &str,
        actor: &str,
        reason: &str,
    ) -> Result<bool, ClientError> {
        match self.admin()?.release_instance(instance).await? {
            ReleaseOutcome::Released => {
                self.audit(RESUME, instance, actor, reason).await?;
                Ok(true)
            }
            ReleaseOutcome::NotHeld => Ok(false),
            _ => Err(unsupported()),
        }
    }

    /// The hold of an instance: kind, actor, time and reason. `None` if the instance is not held.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn held_instance(&self, instance: &str) -> Result<Option<HeldInstance>, ClientError> {
        Ok(self.admin()?.held_instance(instance).await?)
    }

    /// Held instances by ascending id, at most `limit`, after the given id.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn list_held(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<HeldInstance>, ClientError> {
        Ok(self.admin()?.list_held(after, limit).await?)
    }

    /// The numbers of held instances and of their messages, which [`Client::get_queue_depths`] and [`Client::get_gauges`] leave out.
    /// `None` if the store cannot hold instances.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn count_held(&self) -> Result<Option<HeldCounts>, ClientError> {
        Ok(self.admin()?.count_held().await?)
    }

    /// Records of the audit, newest first, at most `limit`, with ids below `before` if it is given. `None` if the store keeps no
    /// audit.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn audit_page(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<AuditRecord>>, ClientError> {
        Ok(self.admin()?.audit_page(before, limit).await?)
    }

    /// Adds a record to the audit of the store. Returns false if the store keeps no audit.
    ///
    /// Cancellation safety: when the future is dropped, the record is stored or it is not.
    pub async fn append_audit(&self, entry: &AuditEntry) -> Result<bool, ClientError> {
        Ok(self.admin()?.append_audit(entry).await?)
    }

    pub(super) async fn can_hold(&self) -> Result<bool, ClientError> {
        Ok(self.count_held().await?.is_some())
    }

    /// Records a change in the audit.
    pub(super) async fn audit(
        &self,
        action: &str,
        target: &str,
        actor: &str,
        reason: &str,
    ) -> Result<(), ClientError> {
        let entry = AuditEntry {
            actor: actor.to_string(),
            action: action.to_string(),
            target: target.to_string(),
            reason: reason.to_string(),
            request: self.request_id(None),
            result: "done".to_string(),
        };
        self.record(&entry).await
    }

    /// Records a change that was made at a time of the store, unless the audit has a record of it since then.
    pub(super) async fn audit_once(
        &self,
        action: &str,
        target: &str,
        actor: &str,
        reason: &str,
        since_ms: u64,
    ) -> Result<(), ClientError> {
        let mut before = None;
        loop {
            let Some(page) = self.audit_page(before, RECORDS).await? else { return Ok(()) };
            let is_record = |AuditRecord { at_ms, entry, .. }: &AuditRecord| {
                *at_ms >= since_ms && entry.action == action && entry.target == target
            };
            if page.iter().any(is_record) {
                return Ok(());
            }
            match page.last() {
                Some(oldest) if page.len() == RECORDS && oldest.at_ms >= since_ms => before = Some(oldest.id),
                _ => return self.audit(action, target, actor, reason).await,
            }
        }
    }

    /// Records a change that was made. An error says so, because a caller that repeats the change would make it twice.
    pub(super) async fn record(&self, entry: &AuditEntry) -> Result<(), ClientError> {
        match self.append_audit(entry).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let cause = match error {
                    ClientError::Provider(cause) => cause.message,
                    error => error.to_string(),
                };
                let target = &entry.target;
                let message =
                    format!("the change of '{target}' was made, and the audit has no record of it: {cause}");
                Err(ProviderError::permanent(RECORD, message).into())
            }
        }
    }
}

impl ClientError {
    /// Whether this is the error of a change that was made, and that the audit could not record. The same change made again would be a
    /// second one.
    pub fn change_was_made(&self) -> bool {
        matches!(self, Self::Provider(error) if error.operation == RECORD)
    }
}

/// The error for an instance that the store did not hold.
fn not_held(instance: &str, outcome: HoldOutcome) -> ClientError {
    match outcome {
        HoldOutcome::Ended => {
            ClientError::invalid(format!("instance '{instance}' has ended: there is nothing to pause"))
        }
        HoldOutcome::Cancelled => ClientError::invalid(format!(
            "a cancellation waits for instance '{instance}', which must be able to end: it is not paused"
        )),
        _ => unsupported(),
    }
}

pub(super) fn unsupported() -> ClientError {
    ClientError::invalid("this store cannot hold instances: use a store that can, or cancel the instance")
}
