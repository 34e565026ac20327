//! The state of the batch, read through the client.

use super::goods::Batch;
use super::order::{Ending, Outcome};
use crate::failure::Failure;
use outlast::client::Client;
use outlast::providers::{Clock, SystemClock};
use outlast::runtime::OrchestrationStatus;
use outlast::{AppErrorKind, ErrorDetails};
use std::collections::BTreeMap;

/// Orders that are open and orders that have ended, by id.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) batch: Batch,
    pub(super) open: BTreeMap<String, Open>,
    pub(super) ended: BTreeMap<String, Ended>,
}

#[derive(Debug)]
pub(super) struct Open {
    pub(super) customer: String,
    pub(super) cents: u64,
    /// The custom status; empty until the first turn.
    pub(super) step: String,
    /// When this process first saw the order.
    pub(super) since_ms: u64,
}

/// The result of the orchestration: an outcome, or an unexpected error.
pub(super) type Ended = Result<Outcome, String>;

/// An order that has just ended.
pub(super) struct News {
    pub(super) order: String,
    pub(super) was: Open,
    pub(super) ended: Ended,
    pub(super) took_ms: u64,
}

impl Board {
    pub(super) fn new(batch: Batch) -> Self {
        Self { batch, open: BTreeMap::new(), ended: BTreeMap::new() }
    }

    /// Adds an order that the store has.
    pub(super) fn placed(&mut self, id: &str) {
        let order = self.batch.order(id);
        let (customer, cents) = (order.customer.clone(), order.cents());
        let open = Open { customer, cents, step: String::new(), since_ms: SystemClock.now_ms() };
        self.open.insert(id.to_string(), open);
    }

    /// Reads the status of every open order.
    pub(super) async fn refresh(&mut self, client: &Client) -> Result<(), Failure> {
        let open: Vec<String> = self.open.keys().cloned().collect();
        for id in open {
            self.saw(&id, status(client, &id).await?);
        }
        Ok(())
    }

    pub(super) fn is_done(&self) -> bool {
        self.ended.len() as u64 == u64::from(self.batch.orders)
    }

    pub(super) fn placed_count(&self) -> usize {
        self.open.len() + self.ended.len()
    }

    pub(super) fn count(&self, ending: Ending) -> usize {
        let is = |ended: &&Ended| ended.as_ref().is_ok_and(|outcome| outcome.ending == ending);
        self.ended.values().filter(is).count()
    }

    /// Updates an open order with its status.
    pub(super) fn saw(&mut self, id: &str, status: OrchestrationStatus) -> Option<News> {
        let ended = match status {
            // The start still waits in the queue.
            OrchestrationStatus::NotFound => return None,
            OrchestrationStatus::Running { custom_status, .. } => {
                let open = self.open.get_mut(id)?;
                open.step = custom_status.unwrap_or_default();
                return None;
            }
            OrchestrationStatus::Completed { output, .. } => {
                serde_json::from_str(&output).map_err(|error| format!("{error} in {output}"))
            }
            OrchestrationStatus::Failed {
                details: ErrorDetails::Application { kind: AppErrorKind::Cancelled { reason }, .. },
                ..
            } => Ok(Outcome { ending: Ending::Cancelled, note: reason }),
            OrchestrationStatus::Failed { details, .. } => Err(details.display_message()),
        };
        let was = self.open.remove(id)?;
        self.ended.insert(id.to_string(), ended.clone());
        let took_ms = SystemClock.now_ms().saturating_sub(was.since_ms);
        Some(News { order: id.to_string(), was, ended, took_ms })
    }
}

/// The status of one order.
pub(super) async fn status(client: &Client, id: &str) -> Result<OrchestrationStatus, Failure> {
    Ok(client.get_orchestration_status(id).await?)
}
