//! Reads of the documents for a turn: the instance, its messages and its gate, in one page where possible.

use crate::aside::waits_for_messages;
use crate::document::{Address, Gate, Instance, Item, Versioned};
use crate::error::damaged;
use crate::number::{indexed, parameter};
use crate::sql;
use crate::store::Store;
use outlast_provider::ProviderError;
use serde::de::DeserializeOwned;

/// The documents of a partition from which a turn follows.
pub(crate) struct Loaded {
    pub(crate) instance: Option<Versioned<Instance>>,
    pub(crate) messages: Vec<Versioned<Item>>,
    pub(crate) gate: SeenGate,
}

/// The gate, if it was read in the same moment as the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SeenGate {
    Version(String),
    Absent,
    /// The messages came in several pages: a message that was stored between two pages may be missing although the version of the gate includes it.
    Unknown,
}

impl Store {
    /// Reads the instance, the gate and the messages that are visible until a time.
    pub(crate) async fn load_partition(
        &self,
        operation: &'static str,
        address: &Address,
        until: u64,
    ) -> Result<Loaded, ProviderError> {
        let parameters = [("@until", parameter(indexed(until)))];
        let (found, is_one_page) =
            self.client.query_pages(operation, &address.partition, sql::TURN, &parameters).await?;
        let mut loaded = Loaded {
            instance: None,
            messages: Vec::new(),
            gate: if is_one_page { SeenGate::Absent } else { SeenGate::Unknown },
        };
        for document in found {
            match document["t"].as_str() {
                Some("i") => loaded.instance = Some(decoded(operation, address, document)?),
                Some("g") => {
                    let gate: Versioned<Gate> = decoded(operation, address, document)?;
                    if is_one_page {
                        loaded.gate = SeenGate::Version(gate.etag);
                    }
                }
                _ => loaded.messages.push(decoded(operation, address, document)?),
            }
        }
        Ok(loaded)
    }
}

fn decoded<T: DeserializeOwned>(
    operation: &str,
    address: &Address,
    document: serde_json::Value,
) -> Result<T, ProviderError> {
    let failed =
        |error: serde_json::Error| damaged(operation, format!("of instance '{}': {error}", address.id));
    serde_json::from_value(document).map_err(failed)
}

/// Whether an attempt at a turn was given up and left documents behind, or messages are set aside after the end of a hold.
pub(crate) fn needs_recovery(instance: &Instance) -> bool {
    has_leftovers(instance) || waits_for_messages(instance)
}

/// Whether an attempt at a turn was given up and left documents behind.
pub(crate) fn has_leftovers(instance: &Instance) -> bool {
    instance.staged.is_some() || !instance.dead.is_empty() || !instance.dropped.is_empty()
}
