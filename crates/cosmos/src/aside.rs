//! Messages of held instances are set aside: they lose `at`, the field by which queries find ready work. So neither the repair
//! query nor the gauges read them, however many instances are held. The instance counts them in `aside`.
//!
//! A hold sets the waiting messages aside. A message that arrives later is found once, by its hint or by the repair query, and the
//! fetch that reads the held instance sets it aside. The batch that ends a hold puts messages back. If they are more than one batch
//! holds, [`recover`](Store::recover) puts the rest back before a turn of the instance is handed out: the order of messages is that of
//! their fields, so that no message overtakes another one.

use crate::client::Op;
use crate::document::{Address, Instance, Item, Versioned};
use crate::instance::Written;
use crate::message::Waiting;
use crate::number::indexed;
use crate::store::Store;
use outlast_provider::ProviderError;

/// Attempts to write an instance that others change.
const ATTEMPTS: usize = 8;

fn is_aside(message: &&Waiting) -> bool {
    message.item.at.is_none()
}

impl Store {
    /// The operations that set messages aside, as many as fit into a batch beside the instance. Counts them in the instance.
    pub(crate) fn set_aside(
        &self,
        instance: &mut Instance,
        messages: &[Waiting],
    ) -> Result<Vec<Op>, ProviderError> {
        let ready: Vec<&Waiting> = messages.iter().filter(|message| !is_aside(message)).collect();
        let operations = self.moved(instance, &ready, |_| None)?;
        instance.aside = (messages.len() - ready.len() + operations.len()) as u64;
        Ok(operations)
    }

    /// The operations that put messages back, as many as fit into a batch beside the instance. The instance counts the rest.
    pub(crate) fn put_back(
        &self,
        instance: &mut Instance,
        messages: &[Waiting],
    ) -> Result<Vec<Op>, ProviderError> {
        let aside: Vec<&Waiting> = messages.iter().filter(is_aside).collect();
        let operations = self.moved(instance, &aside, |item| Some(indexed(item.visible_at)))?;
        instance.aside = (aside.len() - operations.len()) as u64;
        Ok(operations)
    }

    fn moved(
        &self,
        instance: &Instance,
        messages: &[&Waiting],
        at: impl Fn(&Item) -> Option<u64>,
    ) -> Result<Vec<Op>, ProviderError> {
        let size = |document: serde_json::Result<String>| document.map_or(0, |text| text.len());
        let mut bytes = size(serde_json::to_string(instance));
        let mut operations = Vec::new();
        for Waiting { item, etag, .. } in messages {
            bytes += size(serde_json::to_string(item));
            let is_full = operations.len() + 1 >= self.limits.operations || bytes > self.limits.bytes;
            if is_full && !operations.is_empty() {
                break;
            }
            operations.push(Op::replace(&item.id, &Item { at: at(item), ..item.clone() }, Some(etag))?);
        }
        Ok(operations)
    }

    /// Sets all messages of a held instance aside. A failure costs a read of the messages by a later query.
    pub(crate) async fn set_all_aside(&self, operation: &str, address: &Address) {
        if let Err(error) = self.try_set_all_aside(operation, address).await {
            tracing::debug!(
                target: "duroxide::providers::cosmosdb",
                %error, instance = %address.id, "messages of a held instance are set aside later"
            );
        }
    }

    async fn try_set_all_aside(&self, operation: &str, address: &Address) -> Result<(), ProviderError> {
        let mut attempts = 0;
        while attempts < ATTEMPTS {
            let Some(Versioned { etag, document: mut instance }) =
                self.read_instance(operation, address).await?
            else {
                return Ok(());
            };
            let Some(messages) = self.messages_of(operation, address, &instance).await? else {
                attempts += 1;
                continue;
            };
            if !crate::hold::is_held(&instance, &messages) {
                return Ok(());
            }
            let operations = self.set_aside(&mut instance, &messages)?;
            if operations.is_empty() {
                self.ready.set_aside(&address.id, &messages);
                return Ok(());
            }
            let written = self
                .write_instance(operation, Some(&etag), &mut instance, self.uid(), operations, None)
                .await?;
            let is_done = matches!(written, Written::Done { .. });
            if is_done && instance.aside == messages.len() as u64 {
                self.ready.set_aside(&address.id, &messages);
                return Ok(());
            }
            // Every batch that is applied moves messages.
            attempts = if is_done { 0 } else { attempts + 1 };
        }
        Ok(())
    }

    /// Puts the messages of an instance back whose hold has ended. Keeps the lock. Returns the instance; `None` if it changed
    /// meanwhile.
    pub(crate) async fn put_all_back(
        &self,
        operation: &str,
        address: &Address,
        mut found: Versioned<Instance>,
    ) -> Result<Option<Versioned<Instance>>, ProviderError> {
        let Some(messages) = self.messages_of(operation, address, &found.document).await? else {
            return Ok(None);
        };
        let mut aside: Vec<Waiting> = messages.into_iter().filter(|message| is_aside(&message)).collect();
        while found.document.aside > 0 {
            let operations = self.put_back(&mut found.document, &aside)?;
            aside.drain(..operations.len());
            let written = self
                .write_instance(
                    operation,
                    Some(&found.etag),
                    &mut found.document,
                    self.uid(),
                    operations,
                    None,
                )
                .await?;
            let Written::Done { etag, is_last: true, .. } = written else { return Ok(None) };
            found.etag = etag;
        }
        Ok(Some(found))
    }
}

/// Whether the hold of an instance has ended, and messages are still set aside.
pub(crate) fn waits_for_messages(instance: &Instance) -> bool {
    instance.hold.is_none() && instance.aside > 0
}
