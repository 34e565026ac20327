//! Messages that are stored at most once: the document of a key is created in the batch that creates its message.

use crate::client::{Op, is_conflict};
use crate::document::{Address, Gate, Instance, Versioned};
use crate::doubt::Verdict;
use crate::error::contended;
use crate::ids::{self, Uid};
use crate::sql;
use crate::store::Store;
use crate::visible::Visibility;
use outlast_model::{ExecutionStatus, WorkItem};
use outlast_provider::{EnqueueOnce, ProviderError};
use outlast_provider_kit::plan::{checked_key, message_row};
use serde::{Deserialize, Serialize};

const ENQUEUE: &str = "enqueue_once";
const ATTEMPTS: usize = 8;

/// The key of a message: `t = "n"`. It is deleted with its instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Key {
    pub(crate) id: String,
    #[serde(rename = "instanceId")]
    partition: String,
    t: String,
    /// The rev of the import that stored the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rev: Option<u64>,
    /// The write that stored the message.
    w: Uid,
    /// The text of the key. The id has only the digest of a long text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

impl Key {
    pub(crate) fn new(address: &Address, key: &str, rev: Option<u64>, w: Uid) -> Self {
        Self {
            id: ids::message_key(key),
            partition: address.partition.clone(),
            t: "n".to_string(),
            rev,
            w,
            key: Some(key.to_string()),
        }
    }

    /// The text of the key; `None` if an older build stored only the digest of a long text.
    pub(crate) fn text(&self) -> Option<String> {
        self.key.clone().or_else(|| ids::message_key_text(&self.id))
    }
}

impl Store {
    /// Stores a message and its key. The gate is written under `If-Match`, so that of two concurrent calls the second fails and
    /// counts the messages again.
    pub(crate) async fn enqueue_once(
        &self,
        item: &WorkItem,
        key: &str,
        most: usize,
    ) -> Result<EnqueueOnce, ProviderError> {
        let row = message_row(ENQUEUE, item)?;
        checked_key(ENQUEUE, key)?;
        let address = Address::of(&row.instance_id);
        let message = self.enqueued(ENQUEUE, &address, &row, None)?;
        let key = Key::new(&address, key, None, message.w);
        for _ in 0..ATTEMPTS {
            let stored = self.client.read::<Key>(ENQUEUE, &address.partition, &key.id).await?;
            let instance = self.read_instance(ENQUEUE, &address).await?.map(|read| read.document);
            if let Some(stored) = &stored {
                let marks = instance.as_ref().map(Instance::marks).unwrap_or_default();
                match marks.visibility(&key.id, stored.document.rev) {
                    // An attempt of this call whose answer was lost stored the key and the message.
                    Visibility::Visible if stored.document.w == key.w => return Ok(EnqueueOnce::Stored),
                    Visibility::Visible => return Ok(EnqueueOnce::Repeated),
                    // An import that was given up has left the key.
                    Visibility::Hidden => {}
                    Visibility::MarksAreStale => continue,
                }
            }
            let status = instance.as_ref().and_then(|instance| instance.st.as_deref());
            let has_ended =
                status.and_then(ExecutionStatus::from_text).is_some_and(ExecutionStatus::ends_instance);
            if has_ended {
                return Ok(EnqueueOnce::Ended);
            }
            if !self.is_taken(ENQUEUE, &address, instance.as_ref()).await? {
                return Ok(EnqueueOnce::NotFound);
            }
            let gate: Option<Versioned<Gate>> =
                self.client.read(ENQUEUE, &address.partition, ids::GATE).await?;
            let count: Vec<u64> =
                self.client.query(ENQUEUE, &address.partition, sql::WAITING_COUNT, &[]).await?;
            if count.first().copied().unwrap_or(0) >= most as u64 {
                return Ok(EnqueueOnce::Full);
            }
            let next = Gate::new(&address.partition, message.w);
            let guard = match &gate {
                Some(gate) => Op::replace(ids::GATE, &next, Some(&gate.etag))?,
                None => Op::create(&next)?,
            };
            let keep = match &stored {
                Some(hidden) => Op::replace(&key.id, &key, Some(&hidden.etag))?,
                None => Op::create(&key)?,
            };
            let operations = vec![keep, Op::create(&message)?, guard];
            let batched = self
                .announced(&address, &[&message], self.client.batch(&address.partition, operations))
                .await?;
            match batched.verdict() {
                Verdict::Applied => return Ok(EnqueueOnce::Stored),
                Verdict::Refused(refusal) if is_conflict(refusal) => {}
                Verdict::Refused(_) => return Err(batched.error(ENQUEUE)),
                // The next attempt reads the key.
                Verdict::InDoubt => {}
            }
        }
        Err(contended(ENQUEUE, &address.id))
    }
}
