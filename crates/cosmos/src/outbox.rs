//! Messages between instances. A turn stores an intent in its own batch; the intent is delivered after the commit, and removed
//! after its delivery. The key of a message is that of its intent, so that a second delivery finds the first one, or its
//! tombstone.

use crate::activity;
use crate::client::{Op, is_conflict};
use crate::document::{Address, Gate, Item, Target};
use crate::doubt::{Refusal, Verdict};
use crate::error::damaged;
use crate::ids::Uid;
use crate::number::parameter;
use crate::slots::slot_of;
use crate::sql;
use crate::store::{Store, locked};
use outlast_model::json;
use outlast_provider::{ProviderError, ScheduledActivityIdentifier};
use outlast_provider_kit::plan::{activity_row, message_row};
use serde::Deserialize;
use std::sync::atomic::Ordering;

pub use crate::injector::OutboxFaultInjector;

pub(crate) const DELIVER: &str = "deliver";

/// Attempts of a delivery that is in doubt.
const ATTEMPTS: usize = 4;

/// Whether a document exists.
#[derive(Deserialize)]
struct Exists {}

impl Store {
    /// Delivers an intent now; the reconciler delivers it later if that fails.
    pub(crate) async fn deliver_soon(&self, intent: Item) {
        if let Err(error) = self.deliver(&intent).await {
            log_later(&intent, &error);
        }
    }

    /// Delivers an intent and removes it.
    pub(crate) async fn deliver(&self, intent: &Item) -> Result<(), ProviderError> {
        self.hand_over(intent).await?;
        self.remove_intent(intent).await
    }

    pub(crate) async fn remove_intent(&self, intent: &Item) -> Result<(), ProviderError> {
        let removed = self.client.batch(&intent.partition, vec![Op::delete(&intent.id, None)]).await?;
        match removed.verdict() {
            Verdict::Applied | Verdict::Refused(Refusal::Absent) => Ok(()),
            _ => Err(removed.error(DELIVER)),
        }
    }

    /// Stores the document that an intent creates. The intent stays.
    pub(crate) async fn hand_over(&self, intent: &Item) -> Result<(), ProviderError> {
        let Some(target) = &intent.to else {
            return Err(damaged(DELIVER, format!("intent '{}'", intent.id)));
        };
        self.injected_fault()?;
        let address = Address::of(&target.instance);
        let delivered = self.delivered(&address, target, intent)?;
        let mut operations = vec![Op::create(&delivered)?];
        if !target.is_activity {
            operations.push(Op::upsert(&Gate::new(&address.partition, intent.w))?);
        }
        let create = self.create(DELIVER, &address, &delivered.id, operations);
        match target.is_activity {
            true => {
                create.await?;
                self.stored_activity(&address, &delivered).await;
            }
            false => self.announced(&address, &[&delivered], create).await?,
        }
        Ok(())
    }

    /// The document that an intent creates.
    fn delivered(&self, address: &Address, target: &Target, intent: &Item) -> Result<Item, ProviderError> {
        // The text of the error may quote the message, and the error is logged.
        let item = json::decode_work_item(&intent.d)
            .map_err(|_| damaged(DELIVER, format!("intent '{}'", intent.id)))?;
        if target.is_activity {
            let row = activity_row(DELIVER, &item)?;
            let document =
                activity::document(address, &row, intent.visible_at, intent.sequence, intent.w, None);
            return Ok(Item { id: target.id.clone(), ..document });
        }
        let row = message_row(DELIVER, &item)?;
        let mut document = Item {
            id: target.id.clone(),
            partition: address.partition.clone(),
            t: "m".to_string(),
            iid: address.long_id(),
            slot: slot_of(&address.id),
            w: intent.w,
            d: intent.d.clone(),
            visible_at: intent.visible_at,
            ..Item::default()
        };
        document.place(crate::message::rank_of(&row), intent.sequence);
        Ok(document)
    }

    /// Creates a document under a fixed key, with further operations. A document that exists under the key was created before.
    pub(crate) async fn create(
        &self,
        operation: &str,
        address: &Address,
        id: &str,
        operations: Vec<Op>,
    ) -> Result<(), ProviderError> {
        for _ in 0..ATTEMPTS {
            let batched = self.client.batch(&address.partition, operations.clone()).await?;
            match batched.verdict() {
                Verdict::Applied | Verdict::Refused(Refusal::Exists) => return Ok(()),
                Verdict::Refused(_) => return Err(batched.error(operation)),
                Verdict::InDoubt => {
                    if self.client.read::<Exists>(operation, &address.partition, id).await?.is_some() {
                        return Ok(());
                    }
                }
            }
        }
        Err(ProviderError::retryable(
            operation,
            format!("Cosmos DB did not answer a write for instance '{}': try again", address.id),
        ))
    }

    fn injected_fault(&self) -> Result<(), ProviderError> {
        let Some(faults) = locked(&self.outbox_faults).clone() else { return Ok(()) };
        let took = faults.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        match took {
            Ok(_) => Err(ProviderError::retryable(DELIVER, "injected fault: the message is not delivered")),
            Err(_) => Ok(()),
        }
    }

    /// Whether the turn of a document is committed: a staged turn may be given up.
    pub(crate) async fn is_committed(&self, item: &Item) -> Result<bool, ProviderError> {
        if !item.is_staged {
            return Ok(true);
        }
        let Some(address) = item.address() else { return Ok(false) };
        // A deleted sender has no intents left: its purge has delivered those of committed turns.
        let Some(instance) = self.read_instance("reconcile", &address).await? else { return Ok(false) };
        let visibility = instance.document.marks().visibility(&item.id, item.rev);
        Ok(visibility == crate::visible::Visibility::Visible)
    }

    /// Removes an activity of another instance that a turn cancels.
    pub(crate) async fn cancel_elsewhere(
        &self,
        cancelled: &ScheduledActivityIdentifier,
    ) -> Result<(), ProviderError> {
        const CANCEL: &str = "cancel";
        let address = Address::of(&cancelled.instance);
        let parameters = [
            ("@execution", parameter(cancelled.execution_id)),
            ("@activities", serde_json::json!([parameter(cancelled.activity_id)])),
        ];
        let found: Vec<crate::document::Versioned<Item>> =
            self.client.query(CANCEL, &address.partition, sql::SCHEDULED, &parameters).await?;
        for item in found {
            let removal = Op::delete(&item.document.id, Some(&item.etag));
            let removed = self.client.batch(&address.partition, vec![removal]).await?;
            match removed.verdict() {
                Verdict::Applied => self.ready.remove_activity_of(&address.id, &item.document.id),
                Verdict::Refused(refusal) if is_conflict(refusal) => {}
                _ => return Err(removed.error(CANCEL)),
            }
        }
        Ok(())
    }
}

/// Logs that an intent is not delivered yet.
pub(crate) fn log_later(intent: &Item, error: &ProviderError) {
    tracing::warn!(
        target: "duroxide::providers::cosmosdb::outbox",
        %error, intent = %intent.id, "a message to another instance is delivered later"
    );
}

/// The write id of a delivery that a completion makes.
pub(crate) fn sent_key(uid: Uid) -> String {
    crate::ids::message(&crate::ids::MessageKey::Sent(crate::ids::SentKey { source: uid, rev: 0, nth: 0 }))
}
