//! Histories: documents of events, and reads of executions.

use crate::client::Op;
use crate::document::{Address, Events, Execution, ExecutionDocument, Instance, StoredEvent};
use crate::error::{contended, refused};
use crate::ids::{self, Uid};
use crate::instance::Written;
use crate::kv;
use crate::number::parameter;
use crate::prune::is_half_removed;
use crate::sql;
use crate::staging::{HISTORY_BYTES, history_parts};
use crate::store::Store;
use crate::tally::Counts;
use crate::visible::Visibility;
use outlast_model::{Event, ExecutionStatus};
use outlast_provider::{ErrorClass, LoadedTurn, ProviderError};
use outlast_provider_kit::plan::{checked_id, duplicate_event, history_rows};
use outlast_provider_kit::{HistoryRow, rows};

/// Attempts of a read that finds documents of a newer turn than the instance it read.
pub(crate) const READS: usize = 8;

/// Events as documents.
pub(crate) fn documents(
    address: &Address,
    execution_id: u64,
    history: &[HistoryRow],
    rev: Option<u64>,
    write: Uid,
    limit: usize,
) -> Vec<Events> {
    let mut history: Vec<&HistoryRow> = history.iter().collect();
    history.sort_by_key(|row| row.event_id);
    let sizes: Vec<usize> = history.iter().map(|row| row.event_data.len()).collect();
    let parts = history_parts(&sizes, HISTORY_BYTES.min(limit / 2));
    let part = |part: std::ops::Range<usize>| {
        let events = &history[part];
        let first = events.first().map_or(0, |row| row.event_id);
        let stored = |row: &&HistoryRow| StoredEvent { event_id: row.event_id, text: row.event_data.clone() };
        Events {
            id: ids::history(execution_id, first),
            partition: address.partition.clone(),
            t: "h".to_string(),
            execution_id,
            first,
            rev,
            w: write,
            d: events.iter().map(stored).collect(),
        }
    };
    parts.into_iter().map(part).collect()
}

impl Execution {
    /// Counts appended events.
    pub(crate) fn append(&mut self, history: &[HistoryRow]) {
        self.events += history.len() as u64;
        self.bytes += history.iter().map(|row| row.event_data.len() as u64).sum::<u64>();
        let last = history.iter().map(|row| row.event_id).max().unwrap_or(0);
        self.last_event_id = self.last_event_id.max(last);
    }

    /// An execution without stored documents.
    pub(crate) fn new(execution_id: u64, now: u64) -> Self {
        Self {
            execution_id,
            status: ExecutionStatus::Running.to_string(),
            started_at: now,
            ..Self::default()
        }
    }
}

impl Store {
    /// The texts of the events of an execution, by ascending id; `None` if a document is newer than the instance.
    pub(crate) async fn events(
        &self,
        operation: &str,
        address: &Address,
        instance: &Instance,
        execution_id: u64,
    ) -> Result<Option<Vec<StoredEvent>>, ProviderError> {
        let parameters = [("@execution", parameter(execution_id))];
        let found: Vec<Events> =
            self.client.query(operation, &address.partition, sql::HISTORY, &parameters).await?;
        let marks = instance.marks();
        let mut events = Vec::new();
        for document in found {
            match marks.visibility(&document.id, document.rev) {
                Visibility::Visible => events.extend(document.d),
                Visibility::Hidden => {}
                Visibility::MarksAreStale => return Ok(None),
            }
        }
        events.sort_by_key(|event| event.event_id);
        Ok(Some(events))
    }

    /// [`Self::events`] by the newest instance; `execution_id` of `None` is the newest execution. Empty if there is none.
    pub(crate) async fn current_events(
        &self,
        operation: &str,
        address: &Address,
        execution_id: Option<u64>,
    ) -> Result<(u64, Vec<StoredEvent>), ProviderError> {
        for _ in 0..READS {
            let Some(instance) = self.read_instance(operation, address).await? else {
                return Ok((execution_id.unwrap_or(1), Vec::new()));
            };
            let execution_id = execution_id.unwrap_or(instance.document.latest_execution());
            if let Some(events) = self.events(operation, address, &instance.document, execution_id).await? {
                return Ok((execution_id, events));
            }
        }
        Err(contended(operation, &address.id))
    }

    pub(crate) async fn read_events(
        &self,
        operation: &str,
        instance: &str,
        execution_id: Option<u64>,
    ) -> Result<Vec<Event>, ProviderError> {
        let (execution_id, events) =
            self.current_events(operation, &Address::of(instance), execution_id).await?;
        let texts = events.iter().map(|event| event.text.as_str());
        rows::decode_history(instance, execution_id, texts)
            .map_err(|reason| ProviderError::permanent(operation, reason).of_class(ErrorClass::Damaged))
    }

    /// History and key-value snapshot of a turn. `None` if a document is newer than the instance.
    pub(crate) async fn turn_content(
        &self,
        operation: &str,
        address: &Address,
        instance: &Instance,
        execution_id: u64,
    ) -> Result<Option<LoadedTurn>, ProviderError> {
        let (events, keys) = futures::try_join!(
            self.events(operation, address, instance, execution_id),
            self.keys(operation, address, instance)
        )?;
        let (Some(events), Some(keys)) = (events, keys) else { return Ok(None) };
        let texts = events.iter().map(|event| event.text.as_str());
        Ok(Some(rows::decode_turn(&address.id, execution_id, texts, kv::snapshot(keys))))
    }

    pub(crate) async fn load(&self, instance: &str, execution_id: u64) -> Result<LoadedTurn, ProviderError> {
        const LOAD: &str = "load_turn";
        let address = Address::of(instance);
        for _ in 0..READS {
            let read = self.read_instance(LOAD, &address).await?;
            let Some(read) = read else {
                return Ok(rows::decode_turn(instance, execution_id, [], Default::default()));
            };
            if let Some(loaded) = self.turn_content(LOAD, &address, &read.document, execution_id).await? {
                return Ok(loaded);
            }
        }
        Err(contended(LOAD, instance))
    }

    /// The documents of an execution, with the valid document last; `None` if a document is newer than the instance.
    pub(crate) async fn execution_documents(
        &self,
        operation: &str,
        address: &Address,
        instance: &Instance,
        execution_id: u64,
    ) -> Result<Option<Vec<ExecutionDocument>>, ProviderError> {
        let parameters = [("@execution", parameter(execution_id))];
        let found: Vec<ExecutionDocument> =
            self.client.query(operation, &address.partition, sql::EXECUTION, &parameters).await?;
        Ok(visible_executions(instance, found))
    }

    /// An execution of an instance, wherever it is stored, with its output.
    pub(crate) async fn execution(
        &self,
        operation: &str,
        address: &Address,
        instance: &Instance,
        execution_id: u64,
    ) -> Result<Option<Execution>, ProviderError> {
        let latest = instance.latest.clone().filter(|latest| latest.execution_id == execution_id);
        if let Some(latest) = latest.clone().filter(|latest| !latest.output_is_far) {
            return Ok(Some(latest));
        }
        let mut instance = instance.clone();
        for _ in 0..READS {
            let found = self.execution_documents(operation, address, &instance, execution_id).await?;
            if let Some(found) = found {
                let stored = found.into_iter().next_back().map(|document| document.execution);
                // The document of a large output does not count the events that came after it.
                let output = stored.as_ref().and_then(|stored| stored.output.clone());
                let latest = latest.map(|latest| Execution { output, output_is_far: false, ..latest });
                return Ok(latest.or(stored));
            }
            let Some(read) = self.read_instance(operation, address).await? else { return Ok(None) };
            instance = read.document;
        }
        Err(contended(operation, &address.id))
    }

    /// Refuses events whose ids the history of the execution has.
    pub(crate) async fn check_new_events(
        &self,
        operation: &str,
        address: &Address,
        instance: &Instance,
        execution: &Execution,
        history: &[HistoryRow],
    ) -> Result<bool, ProviderError> {
        let first = history.iter().map(|row| row.event_id).min();
        if first.is_none_or(|first| first > execution.last_event_id) {
            return Ok(true);
        }
        let Some(stored) = self.events(operation, address, instance, execution.execution_id).await? else {
            return Ok(false);
        };
        let known = history.iter().find(|row| stored.iter().any(|event| event.event_id == row.event_id));
        match known {
            Some(row) => Err(refused(operation, duplicate_event(row.event_id))),
            None => Ok(true),
        }
    }

    /// Appends events outside of a turn.
    pub(crate) async fn append(
        &self,
        instance: &str,
        execution_id: u64,
        events: &[Event],
    ) -> Result<(), ProviderError> {
        const APPEND: &str = "append_with_execution";
        checked_id(APPEND, instance)?;
        let history = history_rows(APPEND, events)?;
        if history.is_empty() {
            return Ok(());
        }
        let address = Address::of(instance);
        for _ in 0..READS {
            let mut read = self.read_instance(APPEND, &address).await?;
            if let Some(found) = read.take_if(|found| is_half_removed(&found.document)) {
                // Pruned events may have the ids of the new ones.
                read = self.recover(APPEND, &address, found).await?;
                if read.is_none() {
                    continue;
                }
            }
            let etag = read.as_ref().map(|read| read.etag.clone());
            let before = read.as_ref().map(|read| Counts::of(&read.document)).unwrap_or_default();
            let mut next =
                read.map_or_else(|| Instance::skeleton(&address, self.uid()), |read| read.document);
            let write = self.uid();
            let Some(mut further) = self.appended(&address, &mut next, execution_id, &history, write).await?
            else {
                continue;
            };
            let parts = documents(&address, execution_id, &history, None, write, self.limits.bytes);
            let first = parts.first().map(|part| part.id.clone());
            let bytes: usize = parts.iter().flat_map(|part| &part.d).map(|event| event.text.len()).sum();
            if bytes > self.limits.bytes.max(crate::staging::Limits::default().bytes) {
                return Err(refused(
                    APPEND,
                    format!(
                        "{bytes} bytes of events for '{instance}' do not fit into one batch: append fewer at a time"
                    ),
                ));
            }
            for part in &parts {
                further.push(Op::create(part)?);
            }
            let written = self
                .write_instance(APPEND, etag.as_deref(), &mut next, write, further, first.as_deref())
                .await?;
            if matches!(written, Written::Done { .. }) {
                self.tally.add(self.now(), Counts::of(&next).since(before));
                self.watches.committed(instance, false);
                return Ok(());
            }
        }
        Err(contended(APPEND, instance))
    }

    /// Counts appended events in the instance or in the document of their execution, which the operations write.
    async fn appended(
        &self,
        address: &Address,
        instance: &mut Instance,
        execution_id: u64,
        history: &[HistoryRow],
        write: Uid,
    ) -> Result<Option<Vec<Op>>, ProviderError> {
        const APPEND: &str = "append_with_execution";
        instance.events += history.len() as u64;
        let latest = instance.latest.as_ref().filter(|latest| latest.execution_id == execution_id).cloned();
        if let Some(mut latest) = latest {
            if !self.check_new_events(APPEND, address, instance, &latest, history).await? {
                return Ok(None);
            }
            latest.append(history);
            instance.latest = Some(latest);
            return Ok(Some(Vec::new()));
        }
        let found = self.execution_documents(APPEND, address, instance, execution_id).await?;
        let Some(found) = found else { return Ok(None) };
        let mut further: Vec<Op> = found.iter().map(|document| Op::delete(&document.id, None)).collect();
        let mut execution = match found.into_iter().next_back() {
            Some(stored) => stored.execution,
            None => Execution { execution_id, has_events_only: true, ..Execution::default() },
        };
        if !self.check_new_events(APPEND, address, instance, &execution, history).await? {
            return Ok(None);
        }
        execution.append(history);
        instance.odd = true;
        further.push(Op::create(&execution_document(address, execution, None, write))?);
        Ok(Some(further))
    }
}

/// The document of an execution.
pub(crate) fn execution_document(
    address: &Address,
    execution: Execution,
    rev: Option<u64>,
    write: Uid,
) -> ExecutionDocument {
    ExecutionDocument {
        id: ids::execution(execution.execution_id, write),
        partition: address.partition.clone(),
        t: "x".to_string(),
        rev,
        w: write,
        execution_id: execution.execution_id,
        execution,
    }
}

/// The documents of executions that count, by rev; `None` if one is newer than the instance.
pub(crate) fn visible_executions(
    instance: &Instance,
    mut found: Vec<ExecutionDocument>,
) -> Option<Vec<ExecutionDocument>> {
    let marks = instance.marks();
    let visibility = |document: &ExecutionDocument| marks.visibility(&document.id, document.rev);
    if found.iter().any(|document| visibility(document) == Visibility::MarksAreStale) {
        return None;
    }
    found.retain(|document| visibility(document) == Visibility::Visible);
    found.sort_by_key(|document| document.rev);
    Some(found)
}
