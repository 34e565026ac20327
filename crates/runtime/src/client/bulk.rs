//! Changes of many instances: the selection, and the change of each one.

use super::{Client, ClientError};
use crate::OrchestrationStatus;
use outlast_model::AuditEntry;
use outlast_provider::{InstanceInfo, InstanceQuery};
use std::sync::Arc;

/// The instances that a selection reads at a time.
const PAGE: u32 = 1_000;

/// A change that can be made to many instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BulkVerb {
    /// [`Client::cancel_instance`] for running instances.
    Cancel,
    /// [`Client::terminate_instance`] for running instances.
    Terminate,
    /// [`Client::pause_instance`] for running instances.
    Pause,
    /// [`Client::resume_instance`] for held instances.
    Resume,
    /// [`Client::delete_instance`] for ended roots, with their descendants.
    Delete,
}

impl BulkVerb {
    /// All verbs.
    pub const ALL: [Self; 5] = [Self::Cancel, Self::Terminate, Self::Pause, Self::Resume, Self::Delete];

    /// The verb as a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Terminate => "terminate",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Delete => "delete",
        }
    }

    /// The verb with this word.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == text)
    }

    /// The state in which an instance allows the verb: `running`, `held` or `ended`.
    pub fn is_for(self) -> &'static str {
        match self {
            Self::Cancel | Self::Terminate | Self::Pause => "running",
            Self::Resume => "held",
            Self::Delete => "ended",
        }
    }

    /// The statuses of instances that allow the verb.
    fn statuses(self) -> &'static [&'static str] {
        match self {
            Self::Delete => &["Completed", "Failed"],
            _ => &["Running"],
        }
    }

    /// The action in the audit.
    fn action(self) -> &'static str {
        match self {
            Self::Cancel => "instance.cancel",
            Self::Terminate => "instance.terminate",
            Self::Pause => "instance.pause",
            Self::Resume => "instance.resume",
            Self::Delete => "instance.delete",
        }
    }

    /// Whether the state of the instance allows the verb. A child is deleted only with its root.
    fn fits(self, info: &InstanceInfo) -> bool {
        let is_deletable = self != Self::Delete || info.parent_instance_id.is_none();
        is_deletable && self.statuses().contains(&info.status.as_str())
    }
}

/// A change of many instances, and the person or program that makes it, for the audit.
#[derive(Debug, Clone)]
pub struct BulkChange {
    /// The change.
    pub verb: BulkVerb,
    /// The name of the person or program.
    pub actor: String,
    /// The reason, for the audit; a cancelled or terminated instance has it in its history.
    pub reason: String,
    /// The request of the change.
    pub request: Option<String>,
    /// Instances that were created at this time or later are not changed.
    pub created_before: Option<u64>,
}

/// Changes of many instances. The caller selects, shows the selection, and then changes each instance.
impl Client {
    /// The ids of the matching instances whose state allows the change, newest first. A selection has at most `most` + 1 ids: the
    /// surplus id tells the caller that more instances match.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn bulk_select(
        &self,
        verb: BulkVerb,
        query: &InstanceQuery,
        most: usize,
    ) -> Result<Vec<String>, ClientError> {
        if verb == BulkVerb::Resume {
            return self.select_held(query, most).await;
        }
        let mut found = Vec::new();
        let is_wanted = |status: &str| query.status.as_deref().is_none_or(|wanted| wanted == status);
        for status in verb.statuses().iter().copied().filter(|status| is_wanted(status)) {
            let status = Some(status.to_string());
            let mut query = InstanceQuery { status, limit: Some(PAGE), after: None, ..query.clone() };
            while found.len() <= most {
                let page = self.list_instances_page(query.clone()).await?;
                let fitting = page.instances.into_iter().filter(|info| verb.fits(info));
                found.extend(fitting.map(|info| info.instance_id));
                query.after = page.next;
                if query.after.is_none() {
                    break;
                }
            }
        }
        found.truncate(most.saturating_add(1));
        Ok(found)
    }

    /// The given instances that exist, that match, and whose state allows the change, in the given order.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn bulk_select_ids(
        &self,
        verb: BulkVerb,
        query: &InstanceQuery,
        ids: &[String],
    ) -> Result<Vec<String>, ClientError> {
        let mut found = Vec::new();
        for id in ids {
            let Some(info) = self.known(id).await? else { continue };
            let is_held = verb != BulkVerb::Resume || self.held_instance(id).await?.is_some();
            if is_held && verb.fits(&info) && query.matches(&info) && !found.contains(id) {
                found.push(id.clone());
            }
        }
        Ok(found)
    }

    /// Selects among held instances. Held instances are few: the client reads them one by one, and then compares them with the query.
    async fn select_held(&self, query: &InstanceQuery, most: usize) -> Result<Vec<String>, ClientError> {
        let mut found: Vec<InstanceInfo> = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page = self.list_held(after.as_deref(), PAGE as usize).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.instance_id.clone());
            for held in page {
                let info = self.known(&held.instance_id).await?;
                found.extend(info.filter(|info| BulkVerb::Resume.fits(info) && query.matches(info)));
            }
            if found.len() > most {
                break;
            }
        }
        found.sort_by_key(|info| std::cmp::Reverse(info.created_at));
        found.truncate(most.saturating_add(1));
        Ok(found.into_iter().map(|info| info.instance_id).collect())
    }

    /// Makes the change to one instance, and records the change. The client reads the instance again first. Returns false if the
    /// instance is gone, was created too late, or its state no longer allows the verb.
    ///
    /// Cancellation safety: when the future is dropped, the change is made or not. A change that was made may lack its record in the
    /// audit.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidInput`] or [`ClientError::Timeout`] for an instance that refuses the change, such as a pause of an instance
    /// that is being cancelled; [`ClientError::Provider`] if the store does not answer. If the change was made and the audit could not
    /// record it, the error says so, and [`ClientError::change_was_made`] is true.
    pub async fn bulk_apply(&self, change: &BulkChange, instance: &str) -> Result<bool, ClientError> {
        let verb = change.verb;
        let is_old = |info: &InstanceInfo| change.created_before.is_none_or(|mark| info.created_at < mark);
        if !self.known(instance).await?.is_some_and(|info| is_old(&info) && verb.fits(&info)) {
            return Ok(false);
        }
        let (actor, reason) = (change.actor.as_str(), change.reason.as_str());
        let request = self.request_id(change.request.as_deref());
        match verb {
            // These two calls write their records in the audit.
            BulkVerb::Pause => return self.of(request).pause_instance(instance, actor, reason).await,
            BulkVerb::Resume => return self.of(request).resume_instance(instance, actor, reason).await,
            BulkVerb::Cancel => self.cancel_instance(instance, reason).await?,
            BulkVerb::Terminate => self.terminate_instance(instance, reason).await?,
            BulkVerb::Delete => match self.delete_instance(instance, false).await {
                Ok(_) => {}
                Err(ClientError::InstanceNotFound { .. } | ClientError::InstanceStillRunning { .. }) => {
                    return Ok(false);
                }
                Err(error) => return Err(error),
            },
        }
        let entry = AuditEntry {
            actor: actor.to_string(),
            action: verb.action().to_string(),
            target: instance.to_string(),
            reason: reason.to_string(),
            request,
            result: "done".to_string(),
        };
        self.record(&entry).await?;
        Ok(true)
    }

    /// This client for a request.
    fn of(&self, request: Option<String>) -> Self {
        Self { request: request.map(Arc::from), ..self.clone() }
    }

    /// The row of an instance; `None` if it does not exist.
    async fn known(&self, instance: &str) -> Result<Option<InstanceInfo>, ClientError> {
        match self.get_instance_info(instance).await {
            Ok(info) => Ok(Some(info)),
            // The contract's error for a missing instance has no code of its own.
            Err(error) => match self.get_orchestration_status(instance).await? {
                OrchestrationStatus::NotFound => Ok(None),
                _ => Err(error),
            },
        }
    }
}
