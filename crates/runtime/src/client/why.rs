//! The diagnosis of an instance: reads its history, queues, dead letters and hold, and the reports of nodes.

use super::{Client, ClientError};
use crate::OrchestrationStatus;
use crate::lens::{Diagnosis, Evidence, diagnose};
use outlast_provider::{Clock, SystemClock};

/// The most messages and activities that are read; an instance may have thousands.
const MOST_QUEUED: usize = 200;
/// The most dead letters of the store that are searched for those of the instance.
const MOST_DEAD_LETTERS: usize = 1_000;
/// The most instances of a chain of children.
const MOST_CHILDREN: usize = 20;
/// The number of reads if the store changes in between.
const MAX_READS: usize = 3;

impl Client {
    /// Why an instance does not go on, with the diagnosis of the child that it waits for. `max_attempts` is the option of its runtimes.
    ///
    /// Cancellation safety: it only reads.
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

    /// The diagnosis of one instance. A turn between the reads can make an operation look lost; then all is read again.
    async fn diagnose_one(&self, instance: &str, max_attempts: u32) -> Result<Diagnosis, ClientError> {
        let mut reads = 1;
        loop {
            let found = self.diagnose_now(instance, max_attempts).await?;
            if reads == MAX_READS || !found.rule().may_come_from_two_times() {
                return Ok(found);
            }
            reads += 1;
        }
    }

    async fn diagnose_now(&self, instance: &str, max_attempts: u32) -> Result<Diagnosis, ClientError> {
        let is_known = self.get_orchestration_status(instance).await? != OrchestrationStatus::NotFound;
        let executions = self.list_executions(instance).await?;
        let history = match (is_known, executions.last()) {
            (true, _) => {
                let current = self.get_instance_info(instance).await?.current_execution_id;
                self.read_execution_history(instance, current).await?
            }
            (false, Some(newest)) => self.read_execution_history(instance, *newest).await?,
            (false, None) => Vec::new(),
        };
        let pending = self.pending_work(instance, MOST_QUEUED).await?;
        let letters = self.list_dead_letters(MOST_DEAD_LETTERS).await?;
        let dead_letters: Vec<_> =
            letters.into_iter().filter(|letter| letter.instance_id.as_deref() == Some(instance)).collect();
        let held = self.held_instance(instance).await?;
        // A store without reports, and one whose nodes do not report, say nothing about nodes.
        let nodes = self.node_records().await?.filter(|nodes| !nodes.is_empty());
        let now_ms = pending.as_ref().map_or_else(|| SystemClock.now_ms(), |pending| pending.now_ms);
        let mut evidence = Evidence::new(instance, &history, now_ms);
        evidence.is_recorded = is_known || !executions.is_empty();
        evidence.pending = pending.as_ref();
        evidence.dead_letters = &dead_letters;
        evidence.held = held.as_ref();
        evidence.max_attempts = Some(max_attempts);
        evidence.nodes = nodes.as_deref();
        Ok(diagnose(&evidence))
    }
}
