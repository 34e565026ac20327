//! Holds of instances. A hold is a field of the document of the instance, so that every writer sees it under `If-Match`.
//!
//! A cancellation releases a held instance: an instance counts as held while no `CancelInstance` message waits for it. The fetch
//! that delivers the cancellation removes the field.

use crate::aside::waits_for_messages;
use crate::document::{Address, Held, Instance, Item, Override, Versioned};
use crate::error::{contended, lost};
use crate::instance::Written;
use crate::message::{Waiting, counted};
use crate::number;
use crate::sql;
use crate::store::{Store, locked};
use outlast_model::ExecutionStatus;
use outlast_model::defect::{self, Defect};
use outlast_provider::{
    HeldCounts, HeldInstance, Hold, HoldKind, HoldOutcome, ProviderError, ReleaseOutcome,
};
use serde::Deserialize;

const HOLD: &str = "hold_instance";
const HOLD_TURN: &str = "hold_turn";
const RELEASE: &str = "release_instance";
const HELD: &str = "held_instance";

/// The number of attempts to write an instance that other calls change.
const ATTEMPTS: usize = 8;

/// A process reads a held instance again after this time, in case that its messages were not set aside and the hint of its release
/// is lost.
pub(crate) const LOOK_AGAIN_MS: u64 = 60 * 60 * 1_000;

/// Whether a message cancels its instance.
fn cancels(message: &Waiting) -> bool {
    message.item.d.starts_with("{\"CancelInstance\"")
}

/// Whether an instance with these messages is held.
pub(crate) fn is_held(instance: &Instance, messages: &[Waiting]) -> bool {
    instance.hold.is_some() && (defect::is_on(Defect::CancelledStaysHeld) || !messages.iter().any(cancels))
}

pub(crate) fn has_ended(instance: &Instance) -> bool {
    let status = instance.st.as_deref().and_then(ExecutionStatus::from_text);
    status.is_some_and(ExecutionStatus::ends_instance)
}

impl Store {
    /// Holds an instance, unless a turn of it runs.
    pub(crate) async fn hold_instance(
        &self,
        instance: &str,
        hold: &Hold,
    ) -> Result<HoldOutcome, ProviderError> {
        let address = Address::of(instance);
        for _ in 0..ATTEMPTS {
            let read = self.read_instance(HOLD, &address).await?;
            if !self.is_taken(HOLD, &address, read.as_ref().map(|read| &read.document)).await? {
                return Ok(HoldOutcome::NotFound);
            }
            let etag = read.as_ref().map(|read| read.etag.clone());
            let mut document =
                read.map_or_else(|| Instance::skeleton(&address, self.uid()), |read| read.document);
            let Some(messages) = self.messages_of(HOLD, &address, &document).await? else { continue };
            if is_held(&document, &messages) {
                return Ok(HoldOutcome::AlreadyHeld);
            }
            if has_ended(&document) {
                return Ok(HoldOutcome::Ended);
            }
            if messages.iter().any(cancels) {
                return Ok(HoldOutcome::Cancelled);
            }
            let now = self.now();
            let over = document.lock.as_ref().map_or(0, |lock| self.over_at(lock.until, lock.holder));
            if over > now && !defect::is_on(Defect::HoldEndsLiveLease) {
                return Ok(HoldOutcome::InTurn { locked_until_ms: over });
            }
            document.lock = None;
            document.hold = Some(Held::of(hold, now));
            let aside = self.set_aside(&mut document, &messages)?;
            let written = self.write_instance(HOLD, etag.as_deref(), &mut document, self.uid(), aside, None);
            if let Written::Done { .. } = written.await? {
                self.tails.forget(&address.id);
                self.holds(HOLD, &address, &document, &messages).await;
                return Ok(HoldOutcome::Held);
            }
        }
        Err(contended(HOLD, instance))
    }

    /// Gives back a turn with its deliveries uncounted, and holds its instance.
    pub(crate) async fn give_back_for_hold(
        &self,
        token: &str,
        hold: &Hold,
    ) -> Result<HoldOutcome, ProviderError> {
        let Some((secret, address, held)) = self.turn_of(token) else { return Err(lost(HOLD_TURN, token)) };
        let mut held = held.lock().await;
        for _ in 0..ATTEMPTS {
            let current = self.held_instance(HOLD_TURN, token, secret, &address, held.take()).await?;
            let (etag, mut instance) = (current.etag, current.document);
            let now = self.now();
            let Some(lock) = instance.lock.take().filter(|lock| lock.until > now) else {
                return Err(lost(HOLD_TURN, token));
            };
            let Some(messages) = self.messages_of(HOLD_TURN, &address, &instance).await? else { continue };
            if messages.iter().any(cancels) {
                return Ok(HoldOutcome::Cancelled);
            }
            for id in &lock.covers {
                if defect::is_on(Defect::HeldMessagesStayCounted) {
                    break;
                }
                let found = instance.overrides.entry(id.clone()).or_default();
                found.attempts = 0;
                if *found == Override::default() {
                    instance.overrides.remove(id);
                }
            }
            instance.hold = Some(Held::of(hold, now));
            let aside = self.set_aside(&mut instance, &messages)?;
            let written = self.write_instance(HOLD_TURN, Some(&etag), &mut instance, self.uid(), aside, None);
            if let Written::Done { .. } = written.await? {
                self.drop_turn(secret);
                self.tails.forget(&address.id);
                self.ready.locked(&address.id, 0);
                self.holds(HOLD_TURN, &address, &instance, &messages).await;
                return Ok(HoldOutcome::Held);
            }
        }
        Err(contended(HOLD_TURN, &address.id))
    }

    /// The instance is held from now on. Sets the messages aside that the batch of the hold did not take.
    async fn holds(&self, operation: &str, address: &Address, instance: &Instance, messages: &[Waiting]) {
        match instance.aside == messages.len() as u64 {
            true => self.ready.set_aside(&address.id, messages),
            false => self.set_all_aside(operation, address).await,
        }
    }

    /// Ends the hold of an instance that a cancellation releases. A conflict is no error: the caller reads the instance again.
    pub(crate) async fn end_hold(
        &self,
        operation: &str,
        address: &Address,
        etag: Option<&str>,
        mut instance: Instance,
    ) -> Result<(), ProviderError> {
        let Some(messages) = self.messages_of(operation, address, &instance).await? else { return Ok(()) };
        instance.hold = None;
        let back = self.put_back(&mut instance, &messages)?;
        self.write_instance(operation, etag, &mut instance, self.uid(), back, None).await.map(drop)
    }

    /// Ends the hold of an instance, and sends a hint to the runtime that serves it.
    pub(crate) async fn release_instance(&self, instance: &str) -> Result<ReleaseOutcome, ProviderError> {
        let address = Address::of(instance);
        for _ in 0..ATTEMPTS {
            let Some(read) = self.read_instance(RELEASE, &address).await? else {
                return Ok(ReleaseOutcome::NotHeld);
            };
            let (etag, mut document) = (read.etag, read.document);
            let Some(messages) = self.messages_of(RELEASE, &address, &document).await? else { continue };
            if !is_held(&document, &messages) {
                return Ok(ReleaseOutcome::NotHeld);
            }
            document.hold = None;
            let rest = document.rest.unwrap_or(0);
            let back = self.put_back(&mut document, &messages)?;
            let written = self.write_instance(RELEASE, Some(&etag), &mut document, self.uid(), back, None);
            if let Written::Done { etag, is_last, .. } = written.await? {
                if waits_for_messages(&document) && is_last {
                    let rest = self.put_all_back(RELEASE, &address, Versioned { etag, document }).await;
                    if let Err(error) = rest {
                        tracing::debug!(
                            target: "duroxide::providers::cosmosdb",
                            %error, instance, "the next fetch of a released instance puts its messages back"
                        );
                    }
                }
                self.ready.locked(&address.id, rest);
                let items: Vec<&Item> = messages.iter().map(|message| &message.item).collect();
                if !self.owns(&address) {
                    self.hint_messages(&address, &items).await;
                }
                if locked(&self.covered).turns {
                    for message in &messages {
                        let seen = message.seen();
                        self.ready.arrived(&address.id, &seen.id, seen.visible_at, seen.sequence);
                    }
                }
                return Ok(ReleaseOutcome::Released);
            }
        }
        Err(contended(RELEASE, instance))
    }

    /// The messages of an instance; `None` if the instance must be read again.
    pub(crate) async fn messages_of(
        &self,
        operation: &str,
        address: &Address,
        instance: &Instance,
    ) -> Result<Option<Vec<Waiting>>, ProviderError> {
        let messages: Vec<Versioned<Item>> =
            self.client.query(operation, &address.partition, sql::MESSAGES, &[]).await?;
        Ok(counted(instance, messages))
    }

    /// The hold of an instance; `None` if it is not held.
    pub(crate) async fn hold_of(&self, instance: &str) -> Result<Option<HeldInstance>, ProviderError> {
        let address = Address::of(instance);
        for _ in 0..ATTEMPTS {
            let Some(read) = self.read_instance(HELD, &address).await? else { return Ok(None) };
            let Some(held) = &read.document.hold else { return Ok(None) };
            let Some(messages) = self.messages_of(HELD, &address, &read.document).await? else { continue };
            return match is_held(&read.document, &messages) {
                true => held.of_instance(HELD, &address.id).map(Some),
                false => Ok(None),
            };
        }
        Err(contended(HELD, instance))
    }

    /// Held instances by ascending id. The query reads all held instances: the ids are not in an index in their order.
    pub(crate) async fn list_held(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<HeldInstance>, ProviderError> {
        const LIST: &str = "list_held";
        let mut held = Vec::new();
        for HeldRow { partition, iid, hold } in self.held_rows(LIST).await? {
            let Some(address) = Address::of_document(&partition, iid.as_deref()) else { continue };
            if after.is_none_or(|after| address.id.as_str() > after) {
                held.push(hold.of_instance(LIST, &address.id)?);
            }
        }
        held.sort_by(|one, other| one.instance_id.cmp(&other.instance_id));
        held.truncate(limit);
        Ok(held)
    }

    /// The numbers of held instances and of their messages.
    pub(crate) async fn held_counts(&self) -> Result<HeldCounts, ProviderError> {
        const COUNT: &str = "count_held";
        let [instances, aside] = self.held_sums(COUNT).await?;
        let messages = match instances {
            0 => 0,
            _ => aside + self.waiting(COUNT).await?.held_messages,
        };
        Ok(HeldCounts { instances, messages })
    }

    /// The held instances. They are found by the index of `at`, whose time is never reached for a held instance.
    async fn held_rows(&self, operation: &str) -> Result<Vec<HeldRow>, ProviderError> {
        let never = [("@never", number::LARGEST.into())];
        self.client.query_all(operation, sql::HELD, &never, usize::MAX).await
    }
}

/// A held instance, as a list reads it.
#[derive(Deserialize)]
struct HeldRow {
    #[serde(rename = "instanceId")]
    partition: String,
    #[serde(default)]
    iid: Option<String>,
    hold: Held,
}

impl Held {
    fn of(hold: &Hold, now: u64) -> Self {
        Self {
            kind: hold.kind.as_str().to_string(),
            actor: hold.actor.clone(),
            reason: hold.reason.clone(),
            at: now,
        }
    }

    fn of_instance(&self, operation: &str, instance: &str) -> Result<HeldInstance, ProviderError> {
        let Some(kind) = HoldKind::from_text(&self.kind) else {
            let message = format!("the hold of instance '{instance}' has the unknown kind '{}'", self.kind);
            return Err(ProviderError::permanent(operation, message));
        };
        Ok(HeldInstance {
            instance_id: instance.to_string(),
            hold: Hold { kind, actor: self.actor.clone(), reason: self.reason.clone() },
            held_at_ms: self.at,
        })
    }
}
