//! Messages from outside of a turn, starts with a policy, and outcomes of instances.

use crate::client::{Op, is_conflict};
use crate::document::{Address, Gate, Instance, Item, Versioned};
use crate::doubt::Verdict;
use crate::error::{contended, refused};
use crate::ids::{self, MessageKey};
use crate::instance::Written;
use crate::message::{self, counted};
use crate::sql;
use crate::staging::Limits;
use crate::store::Store;
use outlast_model::{ExecutionStatus, SystemStats, WorkItem};
use outlast_provider::{InstanceOutcome, ProviderError, StartOutcome, StartPolicy, StartRequest};
use outlast_provider_kit::plan::{message_row, visible_at};
use outlast_provider_kit::{MessageRow, rows};
use std::time::Duration;

const START: &str = "start_orchestration";
const ATTEMPTS: usize = 8;

/// Messages that one batch stores together with a start.
const MOST_WITH_START: usize = 90;

impl Store {
    /// The document of a message that is enqueued now.
    pub(crate) fn enqueued(
        &self,
        operation: &str,
        address: &Address,
        row: &MessageRow,
        delay: Option<Duration>,
    ) -> Result<Item, ProviderError> {
        let write = self.uid();
        let visible = visible_at(row, self.now(), delay);
        let key = MessageKey::Enqueued(write);
        let item = message::document(address, &key, row, visible, self.time.sequence(), write);
        self.check_size(operation, address, &item)?;
        Ok(item)
    }

    pub(crate) async fn enqueue(
        &self,
        operation: &str,
        item: &WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        let row = message_row(operation, item)?;
        let address = Address::of(&row.instance_id);
        let message = self.enqueued(operation, &address, &row, delay)?;
        let gate = Gate::new(&address.partition, message.w);
        let operations = vec![Op::create(&message)?, Op::upsert(&gate)?];
        self.announced(&address, &[&message], self.create(operation, &address, &message.id, operations)).await
    }

    /// Stores a message unless this number of messages waits. The gate is written under `If-Match`, so that of two concurrent calls
    /// the second fails and counts the messages again.
    pub(crate) async fn enqueue_within(&self, item: &WorkItem, most: usize) -> Result<bool, ProviderError> {
        const ENQUEUE: &str = "enqueue_within";
        let row = message_row(ENQUEUE, item)?;
        let address = Address::of(&row.instance_id);
        let message = self.enqueued(ENQUEUE, &address, &row, None)?;
        let mut is_in_doubt = false;
        for _ in 0..ATTEMPTS {
            if is_in_doubt && self.is_stored(&address, &message).await? {
                return Ok(true);
            }
            let gate: Option<Versioned<Gate>> =
                self.client.read(ENQUEUE, &address.partition, ids::GATE).await?;
            let count: Vec<u64> =
                self.client.query(ENQUEUE, &address.partition, sql::WAITING_COUNT, &[]).await?;
            if count.first().copied().unwrap_or(0) >= most as u64 {
                return Ok(false);
            }
            let next = Gate::new(&address.partition, message.w);
            let guard = match &gate {
                Some(gate) => Op::replace(ids::GATE, &next, Some(&gate.etag))?,
                None => Op::create(&next)?,
            };
            let operations = vec![Op::create(&message)?, guard];
            let batched = self
                .announced(&address, &[&message], self.client.batch(&address.partition, operations))
                .await?;
            match batched.verdict() {
                Verdict::Applied => return Ok(true),
                Verdict::Refused(refusal) if is_conflict(refusal) => {}
                Verdict::Refused(_) => return Err(batched.error(ENQUEUE)),
                // The next attempt has the same id: if this one arrives late, the next one is refused.
                Verdict::InDoubt => is_in_doubt = true,
            }
        }
        if is_in_doubt && self.is_stored(&address, &message).await? {
            return Ok(true);
        }
        Err(contended(ENQUEUE, &address.id))
    }

    async fn is_stored(&self, address: &Address, message: &Item) -> Result<bool, ProviderError> {
        let stored = self.client.read::<Item>("enqueue_within", &address.partition, &message.id).await?;
        Ok(stored.is_some())
    }

    /// Starts an instance unless its id is taken.
    pub(crate) async fn start(&self, request: &StartRequest) -> Result<StartOutcome, ProviderError> {
        let instance = request.checked_instance()?;
        let row = message_row(START, &request.start)?;
        let along = request.messages.iter().map(|message| message_row(START, message));
        let along: Vec<MessageRow> = along.collect::<Result<_, _>>()?;
        if along.len() > MOST_WITH_START {
            let (count, most) = (along.len(), MOST_WITH_START);
            return Err(refused(
                START,
                format!(
                    "instance '{instance}': {count} messages cannot go along with a start, because one commit stores at most {most} \
                     with it: start the instance with {most} of them, and send the others afterwards"
                ),
            ));
        }
        let address = Address::of(instance);
        for attempt in 0..ATTEMPTS {
            // Most ids are new. An instance that exists, or that has ever had a message, refuses the first attempt.
            let is_new = attempt == 0;
            let read = if is_new { None } else { self.read_instance(START, &address).await? };
            if !is_new && self.is_taken(START, &address, read.as_ref().map(|read| &read.document)).await? {
                if request.policy == StartPolicy::UseExisting {
                    for message in &request.messages {
                        // Messages for an instance that exists are not delayed.
                        self.enqueue(START, message, None).await?;
                    }
                }
                let status = self.outcome(instance).await?.map(|outcome| outcome.status);
                return Ok(StartOutcome::AlreadyExists { status });
            }
            let etag = read.as_ref().map(|read| read.etag.clone());
            let mut skeleton =
                read.map_or_else(|| Instance::skeleton(&address, self.uid()), |read| read.document);
            let mut messages = vec![self.enqueued(START, &address, &row, request.delay)?];
            for row in &along {
                messages.push(self.enqueued(START, &address, row, request.delay)?);
            }
            check_together(&address, &messages)?;
            let write = self.uid();
            let gate = Gate::new(&address.partition, write);
            let mut operations = vec![if is_new { Op::create(&gate)? } else { Op::upsert(&gate)? }];
            for message in &messages {
                operations.push(Op::create(message)?);
            }
            let stored: Vec<&Item> = messages.iter().collect();
            let written =
                self.write_instance(START, etag.as_deref(), &mut skeleton, write, operations, None).await?;
            if let Written::Done { .. } = written {
                // The hints follow the write, which is refused if the id is taken.
                self.announced(&address, &stored, async { Ok(()) }).await?;
                return Ok(StartOutcome::Started);
            }
        }
        Err(contended(START, instance))
    }

    /// Whether the store has a row, an execution or an event of the instance, or its start waits.
    pub(crate) async fn is_taken(
        &self,
        operation: &str,
        address: &Address,
        instance: Option<&Instance>,
    ) -> Result<bool, ProviderError> {
        let absent = Instance::skeleton(address, ids::Uid::default());
        let instance = instance.unwrap_or(&absent);
        if instance.row.is_some() || instance.latest.is_some() {
            return Ok(true);
        }
        if instance.odd {
            let (_, events) = self.current_events(operation, address, Some(1)).await?;
            if !events.is_empty() {
                return Ok(true);
            }
        }
        let starts: Vec<Versioned<Item>> =
            self.client.query(operation, &address.partition, sql::STARTS, &[]).await?;
        // A start that is newer than the instance is visible soon.
        let Some(starts) = counted(instance, starts) else { return Ok(true) };
        Ok(starts.iter().any(|start| rows::decode_message(&address.id, &start.item.d).is_ok()))
    }

    /// Status and result of the newest execution.
    pub(crate) async fn outcome(&self, instance: &str) -> Result<Option<InstanceOutcome>, ProviderError> {
        const OUTCOME: &str = "read_outcome";
        let address = Address::of(instance);
        let Some(read) = self.read_instance(OUTCOME, &address).await? else { return Ok(None) };
        let document = read.document;
        if document.latest.is_none() {
            return Ok(None);
        }
        let execution_id = document.latest_execution();
        let Some(execution) = self.execution(OUTCOME, &address, &document, execution_id).await? else {
            return Ok(None);
        };
        let failure = match execution.status == ExecutionStatus::Failed.as_str() {
            true => {
                let (_, events) = self.current_events(OUTCOME, &address, Some(execution_id)).await?;
                let events =
                    events.iter().filter_map(|event| outlast_model::json::decode_event(&event.text).ok());
                let terminal: Vec<_> = events.filter(|event| event.is_terminal()).collect();
                InstanceOutcome::from_history(&terminal).and_then(|outcome| outcome.failure)
            }
            false => None,
        };
        let row = document.row.as_ref();
        Ok(Some(InstanceOutcome {
            execution_id,
            status: execution.status,
            output: execution.output,
            failure,
            custom_status: row.and_then(|row| row.custom_status.clone()),
            custom_status_version: row.map_or(0, |row| row.custom_status_version),
        }))
    }

    pub(crate) async fn custom_status(
        &self,
        instance: &str,
        last_seen: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        let read = self.read_instance("get_custom_status", &Address::of(instance)).await?;
        let row = read.and_then(|read| read.document.row);
        let row = row.filter(|row| row.custom_status_version > last_seen);
        Ok(row.map(|row| (row.custom_status, row.custom_status_version)))
    }

    /// Sizes of the current execution and of the live key-value view.
    pub(crate) async fn stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        const STATS: &str = "get_instance_stats";
        let address = Address::of(instance);
        let Some(read) = self.read_instance(STATS, &address).await? else { return Ok(None) };
        let Some(row) = read.document.row else { return Ok(None) };
        let (_, events) = self.current_events(STATS, &address, Some(row.current)).await?;
        let values: Vec<String> = self
            .current_keys(STATS, &address)
            .await?
            .into_values()
            .filter_map(crate::kv::State::live)
            .collect();
        let carried = match events.first() {
            Some(first) => rows::carried_messages(instance, &first.text)
                .map_err(|reason| ProviderError::permanent(STATS, reason))?,
            None => 0,
        };
        Ok(Some(SystemStats {
            history_event_count: events.len() as u64,
            history_size_bytes: events.iter().map(|event| event.text.len() as u64).sum(),
            queue_pending_count: carried,
            kv_user_key_count: values.len() as u64,
            kv_total_value_bytes: values.iter().map(|value| value.len() as u64).sum(),
        }))
    }
}

/// Refuses a start whose messages do not fit into one batch.
fn check_together(address: &Address, messages: &[Item]) -> Result<(), ProviderError> {
    let bytes_of = |message: &Item| serde_json::to_string(message).map_or(0, |text| text.len());
    let (bytes, limit) = (messages.iter().map(bytes_of).sum::<usize>(), Limits::default().bytes);
    if bytes <= limit {
        return Ok(());
    }
    let (id, along) = (&address.id, messages.len().saturating_sub(1));
    Err(refused(
        START,
        format!(
            "instance '{id}': the start and {along} message(s) along with it have {bytes} bytes, and one commit stores at most \
             {limit}: send the messages after the start, or pass references to large data"
        ),
    ))
}
