//! The row and the execution of an instance, as a turn changes them.

use crate::commit::ACK;
use crate::document::{Address, Execution, ExecutionDocument, Instance, Row};
use crate::history::execution_document;
use crate::ids::Uid;
use crate::store::Store;
use outlast_provider::ProviderError;
use outlast_provider_kit::{CommitPlan, is_final};

/// An output above this size is not in the document of the instance, which every turn writes.
pub(crate) const LARGEST_NEAR_OUTPUT: usize = 64 * 1024;

/// A turn that is recorded.
#[derive(Clone, Copy)]
pub(crate) struct Recording<'a> {
    pub(crate) address: &'a Address,
    pub(crate) plan: &'a CommitPlan,
    pub(crate) now: u64,
    pub(crate) rev: u64,
    pub(crate) write: Uid,
}

/// The documents of executions that a turn creates, and the ids of those that they replace.
#[derive(Default)]
pub(crate) struct Recorded {
    pub(crate) stored: Vec<ExecutionDocument>,
    pub(crate) superseded: Vec<String>,
}

/// The execution of a turn, as it was before the turn.
struct Found {
    execution: Execution,
    /// No turn of the execution was committed.
    is_new: bool,
    /// The documents that hold it.
    superseded: Vec<String>,
}

impl Store {
    /// Records row, execution and status in the instance. `None` if documents are newer than the instance.
    pub(crate) async fn record_execution(
        &self,
        turn: &Recording<'_>,
        instance: &mut Instance,
    ) -> Result<Option<Recorded>, ProviderError> {
        self.record_row(turn, instance);
        let Some(found) = self.found_execution(turn, instance).await? else { return Ok(None) };
        let Found { mut execution, is_new, superseded } = found;
        let mut recorded = Recorded { stored: Vec::new(), superseded };
        if !self.check_new_events(ACK, turn.address, instance, &execution, &turn.plan.history).await? {
            return Ok(None);
        }
        execution.append(&turn.plan.history);
        instance.events += turn.plan.history.len() as u64;
        instance.executions += u64::from(is_new);
        let Some(replaced) = self.record_end(turn, instance, &mut execution).await? else { return Ok(None) };
        recorded.superseded.extend(replaced);
        if !self.place(turn, instance, &mut execution, &mut recorded).await? {
            return Ok(None);
        }
        self.record_status(turn.address, instance, &execution).await?;
        Ok(Some(recorded))
    }

    fn record_row(&self, turn: &Recording<'_>, instance: &mut Instance) {
        let (plan, metadata) = (turn.plan, &turn.plan.metadata);
        if let (Some(name), Some(version)) = (&metadata.orchestration_name, &metadata.orchestration_version) {
            if instance.row.is_none() {
                instance.ct = Some(self.time.sequence());
                instance.par.clone_from(&metadata.parent_instance_id);
            }
            let created = || Row { current: plan.execution_id, created_at: turn.now, ..Row::default() };
            let row = instance.row.get_or_insert_with(created);
            row.name.clone_from(name);
            row.version.clone_from(version);
        }
        if let Some(row) = &mut instance.row {
            row.current = row.current.max(plan.execution_id);
            row.updated_at = turn.now;
            if let Some(status) = &plan.custom_status {
                row.custom_status.clone_from(status);
                row.custom_status_version += 1;
            }
        }
    }

    async fn found_execution(
        &self,
        turn: &Recording<'_>,
        instance: &Instance,
    ) -> Result<Option<Found>, ProviderError> {
        let id = turn.plan.execution_id;
        let new = || Execution::new(id, turn.now);
        let found = |execution, is_new, superseded| Ok(Some(Found { execution, is_new, superseded }));
        match &instance.latest {
            Some(latest) if latest.execution_id == id => return found(latest.clone(), false, Vec::new()),
            latest if !instance.odd && latest.as_ref().is_none_or(|latest| id > latest.execution_id) => {
                return found(new(), true, Vec::new());
            }
            _ => {}
        }
        let stored = self.execution_documents(ACK, turn.address, instance, id).await?;
        let Some(stored) = stored else { return Ok(None) };
        let superseded = stored.iter().map(|document| document.id.clone()).collect();
        match stored.into_iter().next_back().map(|document| document.execution) {
            Some(stored) if stored.has_events_only => {
                let execution = Execution {
                    last_event_id: stored.last_event_id,
                    events: stored.events,
                    bytes: stored.bytes,
                    ..new()
                };
                found(execution, true, superseded)
            }
            Some(stored) => found(stored, false, superseded),
            None => found(new(), true, superseded),
        }
    }

    /// Records status, output and pin of an execution. Returns the documents of an output that is replaced; `None` if documents
    /// are newer than the instance.
    async fn record_end(
        &self,
        turn: &Recording<'_>,
        instance: &Instance,
        execution: &mut Execution,
    ) -> Result<Option<Vec<String>>, ProviderError> {
        let metadata = &turn.plan.metadata;
        let mut superseded = Vec::new();
        if let Some(status) = &metadata.status {
            let is_latest =
                instance.latest.as_ref().is_some_and(|latest| latest.execution_id == turn.plan.execution_id);
            if execution.output_is_far && is_latest {
                let Some(ids) = self.ids_of_execution(turn, instance, turn.plan.execution_id).await? else {
                    return Ok(None);
                };
                superseded = ids;
            }
            execution.status.clone_from(status);
            execution.output.clone_from(&metadata.output);
            execution.output_is_far = false;
            execution.completed_at = is_final(status).then_some(turn.now);
        }
        if let Some(pin) = &metadata.pinned_duroxide_version {
            execution.pinned = Some(pin.to_string());
        }
        Ok(Some(superseded))
    }

    /// Stores the execution: the latest one in the instance, except for a large output, every other one in a document. False if
    /// documents are newer than the instance.
    async fn place(
        &self,
        turn: &Recording<'_>,
        instance: &mut Instance,
        execution: &mut Execution,
        recorded: &mut Recorded,
    ) -> Result<bool, ProviderError> {
        let document = |execution| execution_document(turn.address, execution, Some(turn.rev), turn.write);
        let id = turn.plan.execution_id;
        let latest = instance.latest.clone();
        if latest.as_ref().is_some_and(|latest| id < latest.execution_id) {
            recorded.stored.push(document(execution.clone()));
            return Ok(true);
        }
        if let Some(before) = latest.filter(|before| before.execution_id != id) {
            if before.output_is_far {
                let ids = self.ids_of_execution(turn, instance, before.execution_id).await?;
                let Some(ids) = ids else { return Ok(false) };
                recorded.superseded.extend(ids);
            }
            let ended = self.execution(ACK, turn.address, instance, before.execution_id).await?;
            recorded.stored.extend(ended.map(document));
        }
        if execution.output.as_ref().is_some_and(|output| output.len() > LARGEST_NEAR_OUTPUT) {
            recorded.stored.push(document(execution.clone()));
            execution.output = None;
            execution.output_is_far = true;
        }
        instance.latest = Some(execution.clone());
        Ok(true)
    }

    /// The ids of the documents of an execution; `None` if one is newer than the instance.
    async fn ids_of_execution(
        &self,
        turn: &Recording<'_>,
        instance: &Instance,
        execution_id: u64,
    ) -> Result<Option<Vec<String>>, ProviderError> {
        let found = self.execution_documents(ACK, turn.address, instance, execution_id).await?;
        Ok(found.map(|found| found.into_iter().map(|document| document.id).collect()))
    }

    /// Repeats the status of the current execution for queries.
    async fn record_status(
        &self,
        address: &Address,
        instance: &mut Instance,
        committed: &Execution,
    ) -> Result<(), ProviderError> {
        let Some(current) = instance.row.as_ref().map(|row| row.current) else { return Ok(()) };
        let execution = match committed.execution_id == current {
            true => Some(committed.clone()),
            false => self.execution(ACK, address, instance, current).await?,
        };
        let unknown = || "Unknown".to_string();
        instance.st = Some(execution.as_ref().map_or_else(unknown, |execution| execution.status.clone()));
        if let Some(row) = &mut instance.row {
            row.completed_at = execution.and_then(|execution| execution.completed_at);
        }
        Ok(())
    }
}
