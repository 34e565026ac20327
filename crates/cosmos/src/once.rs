//! Messages that are stored at most once: the document of a key is created in the batch that creates its message.

use crate::client::{Op, is_conflict};
use crate::document::{Address, Gate, Versioned};
use crate::doubt::Verdict;
use crate::error::contended;
use crate::ids::{self, Uid};
use crate::sql;
use crate::store::Store;
use outlast_model::{ExecutionStatus, WorkItem};
use outlast_provider::{EnqueueOnce, ProviderError};
use outlast_provider_kit::plan::{checked_key, message_row};
use serde::{Deserialize, Serialize};

const ENQUEUE: &str = "enqueue_once";
const ATTEMPTS: usize = 8;

/// The key of a message: `t = "n"`. It is deleted with its instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Key {
    id: String,
    #[serde(rename = "instanceId")]
    partition: String,
    t: String,
    /// The write that stored the message.
    w: Uid,
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
        let message = self.arrival(ENQUEUE, &address, &row, None)?;
        let key = Key {
            id: ids::message_key(key),
            partition: address.partition.clone(),
            t: "n".to_string(),
            w: message.w,
        };
        for _ in 0..ATTEMPTS {
            if let Some(stored) = self.client.read::<Key>(ENQUEUE, &address.partition, &key.id).await? {
                // An attempt of this call whose answer was lost stored the key and the message.
                return Ok(match stored.document.w == key.w {
                    true => EnqueueOnce::Stored,
                    false => EnqueueOnce::Repeated,
                });
            }
            let instance = self.read_instance(ENQUEUE, &address).await?.map(|read| read.document);
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
            let operations = vec![Op::create(&key)?, Op::create(&message)?, guard];
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
