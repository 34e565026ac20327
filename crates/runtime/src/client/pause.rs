//! Pause and resume of orchestrations.

use super::hold::unsupported;
use super::{Client, ClientError};
use crate::dispatch::paused::{FRESH, hold_of};
use outlast_model::PausedOrchestration;
use outlast_provider::{HoldOutcome, InstanceQuery, ReleaseOutcome};
use std::collections::BTreeSet;

const PAUSE: &str = "orchestration.pause";
const RESUME: &str = "orchestration.resume";
/// Held instances or instances of one page.
const PAGE: u32 = 500;
/// The most messages of an instance among which its start is searched.
const MOST_QUEUED: usize = 200;

/// Pause and resume of all instances of an orchestration, in all its versions, recorded in the audit of the store. The set of paused
/// orchestrations is in the store, so that it outlives every process.
///
/// Starts of a paused orchestration are stored as usual: from clients, from parents and as detached instances. A runtime holds each
/// instance before its code runs, and its start waits uncounted. The parent of a held child waits for it. An execution that continues
/// as new is held before its successor runs. Activities that were scheduled run on. Cancellation ends held instances as usual.
impl Client {
    /// Pauses an orchestration: no runtime begins a turn of its instances until [`Client::resume_orchestration`], whether they run now
    /// or start later. Returns the number of running instances that were held now; a turn that runs is awaited.
    ///
    /// Runtimes read the paused orchestrations once per second, so the call takes at least a second if the orchestration was not
    /// paused before.
    ///
    /// Cancellation safety: when the future is dropped, the orchestration is paused or not. A paused orchestration may lack its record
    /// in the audit, and running instances are held at their next turn. The same holds after an error of the store. A call that repeats
    /// the pause, with its actor and reason, records it if the audit has no record of it.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidInput`] if the store cannot pause orchestrations; [`ClientError::Timeout`] if a turn runs for more than a
    /// minute.
    pub async fn pause_orchestration(
        &self,
        orchestration: &str,
        actor: &str,
        reason: &str,
    ) -> Result<u64, ClientError> {
        match self.admin()?.pause_orchestration(orchestration, actor, reason).await? {
            HoldOutcome::Held => {
                self.audit(PAUSE, orchestration, actor, reason).await?;
                tokio::time::sleep(FRESH).await;
            }
            HoldOutcome::AlreadyHeld => self.record_paused(orchestration, actor, reason).await?,
            _ => return Err(unsupported()),
        }
        let hold = hold_of(&PausedOrchestration {
            orchestration: orchestration.to_string(),
            actor: actor.to_string(),
            reason: reason.to_string(),
            paused_at_ms: 0,
        });
        let mut query = InstanceQuery {
            status: Some("Running".to_string()),
            orchestration_name: Some(orchestration.to_string()),
            limit: Some(PAGE),
            ..InstanceQuery::default()
        };
        let mut paused = 0;
        loop {
            let page = self.admin()?.query_instances(&query).await?;
            for info in &page.instances {
                match self.hold(&info.instance_id, &hold).await {
                    Ok(is_new) => paused += u64::from(is_new),
                    // The instance ended, was cancelled or was deleted after the page was read.
                    Err(ClientError::InstanceNotFound { .. }) => {}
                    Err(ClientError::InvalidInput { .. }) if self.can_hold().await? => {}
                    Err(error) => return Err(error),
                }
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(paused),
            }
        }
    }

    /// Records the pause of an orchestration that the same call made before, unless the audit has the record.
    async fn record_paused(&self, orchestration: &str, actor: &str, reason: &str) -> Result<(), ClientError> {
        let paused = self.paused_orchestrations().await?.unwrap_or_default();
        let same = paused.iter().find(|paused| {
            paused.orchestration == orchestration && paused.actor == actor && paused.reason == reason
        });
        match same {
            Some(paused) => self.audit_once(PAUSE, orchestration, actor, reason, paused.paused_at_ms).await,
            None => Ok(()),
        }
    }

    /// Resumes an orchestration: its instances that are paused or parked go on, and later starts run. Returns the number of instances
    /// that were resumed.
    ///
    /// A runtime that has not read the change yet may hold an instance for another second. So if the orchestration was paused, the
    /// call searches for held instances twice, a second apart.
    ///
    /// Cancellation safety: when the future is dropped, the orchestration is resumed or not, and some of its instances are resumed.
    /// A repeated call resumes the other instances.
    pub async fn resume_orchestration(
        &self,
        orchestration: &str,
        actor: &str,
        reason: &str,
    ) -> Result<u64, ClientError> {
        let was_paused = match self.admin()?.resume_orchestration(orchestration).await? {
            ReleaseOutcome::Released => {
                self.audit(RESUME, orchestration, actor, reason).await?;
                true
            }
            _ => false,
        };
        let mut resumed = BTreeSet::new();
        self.release_all(orchestration, actor, reason, &mut resumed).await?;
        if was_paused {
            tokio::time::sleep(FRESH).await;
            self.release_all(orchestration, actor, reason, &mut resumed).await?;
        }
        Ok(resumed.len() as u64)
    }

    /// Releases the held instances of an orchestration, one after the other, and adds their ids to `resumed`.
    async fn release_all(
        &self,
        orchestration: &str,
        actor: &str,
        reason: &str,
        resumed: &mut BTreeSet<String>,
    ) -> Result<(), ClientError> {
        let mut after = None::<String>;
        loop {
            let page = self.list_held(after.as_deref(), PAGE as usize).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.instance_id.clone());
            for held in page {
                if self.orchestration_of(&held.instance_id).await?.as_deref() == Some(orchestration)
                    && self.release(&held.instance_id, actor, reason).await?
                {
                    resumed.insert(held.instance_id);
                }
            }
        }
    }

    /// The paused orchestrations by ascending name. `None` if the store cannot pause orchestrations.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn paused_orchestrations(&self) -> Result<Option<Vec<PausedOrchestration>>, ClientError> {
        Ok(self.admin()?.paused_orchestrations().await?)
    }

    pub(super) async fn is_paused(&self, orchestration: &str) -> Result<bool, ClientError> {
        let paused = self.paused_orchestrations().await?.unwrap_or_default();
        Ok(paused.iter().any(|paused| paused.orchestration == orchestration))
    }

    /// The orchestration of an instance: before its first turn, that of its waiting start.
    pub(super) async fn orchestration_of(&self, instance: &str) -> Result<Option<String>, ClientError> {
        match self.admin()?.get_instance_info(instance).await {
            Ok(info) => return Ok(Some(info.orchestration_name)),
            Err(error) if error.is_retryable() => return Err(error.into()),
            // The instance has no row.
            Err(_) => {}
        }
        let pending = self.admin()?.pending(instance, MOST_QUEUED).await?.unwrap_or_default();
        let start = pending.messages.into_iter().find(|message| message.kind.as_deref() == Some(START));
        Ok(start.and_then(|start| start.name))
    }
}

/// The kind of the message that starts an instance.
const START: &str = "StartOrchestration";
