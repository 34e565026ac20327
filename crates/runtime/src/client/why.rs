//! The diagnosis of an instance: reads its history, queues, dead letters and hold, and the reports of nodes.

use super::{Client, ClientError};
use crate::OrchestrationStatus;
use crate::lens::{Diagnosis, Evidence, Undecodable, diagnose};
use outlast_model::Event;
use outlast_provider::{Clock, SystemClock};

/// The most messages and activities that are read; an instance may have thousands.
const MOST_QUEUED: usize = 200;
/// The most dead letters of the store that are searched for those of the instance.
const MOST_DEAD_LETTERS: usize = 1_000;
/// The most instances of a chain of children.
const MOST_CHILDREN: usize = 20;
/// The number of reads if turns are committed in between.
const MAX_READS: usize = 20;

/// The last event of an instance: its execution and its id, both 0 without events.
type Position = (u64, u64);

impl Client {
    /// The reason for which an instance does not continue, with the diagnosis of the child that the instance waits for.
    /// `max_attempts` is the option of its runtimes.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn diagnose_instance(
        &self,
        instance: &str,
        max_attempts: u32,
    ) -> Result<Diagnosis, ClientError> {
        let mut last = self.diagnose_one(instance, max_attempts).await?;
        let mut parents = Vec::new();
        while let Some(child) = last.child().filter(|_| parents.len() < MOST_CHILDREN).map(str::to_string) {
            parents.push(last);
            last = self.diagnose_one(&child, max_attempts).await?;
        }
        Ok(parents.into_iter().rfold(last, |child, parent| parent.with_child(child)))
    }

    /// The diagnosis of one instance. A turn between the reads can make an operation look lost. Such a diagnosis is valid only if
    /// the history has not grown since it was read; otherwise the client reads the instance again.
    async fn diagnose_one(&self, instance: &str, max_attempts: u32) -> Result<Diagnosis, ClientError> {
        let mut reads = 1;
        loop {
            let (found, position) = self.diagnose_now(instance, max_attempts).await?;
            let is_certain = !found.rule().may_come_from_two_times();
            if is_certain || reads == MAX_READS || self.is_at(instance, position).await? {
                return Ok(found);
            }
            reads += 1;
        }
    }

    /// Whether the instance has no event after this one.
    async fn is_at(&self, instance: &str, (execution, event): Position) -> Result<bool, ClientError> {
        let newest = self.list_executions(instance).await?.last().copied().unwrap_or(0);
        if newest != execution {
            return Ok(false);
        }
        Ok(newest == 0 || self.history_page(instance, newest, event, 1).await?.is_empty())
    }

    /// Reads the instance once and diagnoses it. Also returns the position of the history that was read.
    async fn diagnose_now(
        &self,
        instance: &str,
        max_attempts: u32,
    ) -> Result<(Diagnosis, Position), ClientError> {
        let status = self.get_orchestration_status(instance).await?;
        let is_known = status != OrchestrationStatus::NotFound;
        let executions = self.list_executions(instance).await?;
        let current = match is_known {
            true => Some(self.get_instance_info(instance).await?.current_execution_id),
            false => executions.last().copied(),
        };
        let decoded = match current {
            Some(execution) => self.decoded_history(instance, execution).await?,
            None => Some(Vec::new()),
        };
        let undecodable = decoded.is_none().then_some(match &status {
            OrchestrationStatus::NotFound | OrchestrationStatus::Running { .. } => Undecodable::Running,
            OrchestrationStatus::Completed { .. } => Undecodable::Completed,
            OrchestrationStatus::Failed { details, .. } => Undecodable::Failed(details),
        });
        let history = decoded.unwrap_or_default();
        let pending = self.pending_work(instance, MOST_QUEUED).await?;
        let letters = self.list_dead_letters(MOST_DEAD_LETTERS).await?;
        let dead_letters: Vec<_> =
            letters.into_iter().filter(|letter| letter.instance_id.as_deref() == Some(instance)).collect();
        let held = self.held_instance(instance).await?;
        // Without any report, the diagnosis must not call a node lost: the store may keep no reports, or its nodes may send none.
        let nodes = self.node_records().await?.filter(|nodes| !nodes.is_empty());
        let now_ms = pending.as_ref().map_or_else(|| SystemClock.now_ms(), |pending| pending.now_ms);
        let mut evidence = Evidence::new(instance, &history, now_ms);
        evidence.is_recorded = is_known || !executions.is_empty();
        evidence.undecodable = undecodable;
        evidence.pending = pending.as_ref();
        evidence.dead_letters = &dead_letters;
        evidence.held = held.as_ref();
        evidence.max_attempts = Some(max_attempts);
        evidence.nodes = nodes.as_deref();
        let position = history.last().map_or((0, 0), |last| (last.execution_id, last.event_id));
        Ok((diagnose(&evidence), position))
    }

    /// The events of an execution that exists; `None` if they do not decode, for which every store has a permanent error.
    async fn decoded_history(
        &self,
        instance: &str,
        execution: u64,
    ) -> Result<Option<Vec<Event>>, ClientError> {
        match self.read_execution_history(instance, execution).await {
            Ok(history) => Ok(Some(history)),
            Err(ClientError::Provider(error)) if !error.is_retryable() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
