//! Leased turns and activities on their way from the writer to the caller of a fetch.

use crate::handle::Handle;
use outlast_model::WorkItem;
use outlast_provider::{ClassifiedError, FetchedTurn, FetchedWork, KvEntry, OrchestrationItem};
use outlast_provider_kit::rows;
use std::collections::HashMap;
use tokio::sync::oneshot;

/// The answer to a fetch: leases, `None` if there are none, or an error.
pub(crate) type LeaseAnswer<L> = Result<Option<Guarded<L>>, ClassifiedError>;

/// Answers the caller of a fetch.
pub(crate) type LeaseSender<L> = oneshot::Sender<LeaseAnswer<L>>;

/// The queue of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseKind {
    Turn,
    Activity,
}

/// A leased turn as the writer hands it out; its caller decodes the history, so that the writer need not.
#[derive(Debug)]
pub(crate) struct RawTurn {
    pub(crate) instance: String,
    pub(crate) orchestration_name: String,
    pub(crate) version: String,
    pub(crate) execution_id: u64,
    pub(crate) messages: Vec<WorkItem>,
    pub(crate) lock_token: String,
    pub(crate) attempt_count: u32,
    pub(crate) last_event_id: u64,
    pub(crate) created_at: Option<u64>,
    pub(crate) has_ended: bool,
    pub(crate) now: u64,
    /// The texts of the events and the key-value snapshot, if the fetch asked for the history.
    pub(crate) replay: Option<(Vec<String>, HashMap<String, KvEntry>)>,
    /// The reason why a row that the turn needs cannot be read.
    pub(crate) damage: Option<String>,
}

impl RawTurn {
    /// The turn with its history decoded.
    pub(crate) fn into_fetched(self) -> FetchedTurn {
        let history_loaded = self.replay.is_some();
        let (texts, kv_snapshot) = self.replay.unwrap_or_default();
        let decoded =
            rows::decode_history(&self.instance, self.execution_id, texts.iter().map(String::as_str));
        let (history, history_error) = match decoded {
            Ok(history) => (history, self.damage),
            Err(reason) => (Vec::new(), Some(reason)),
        };
        FetchedTurn {
            item: OrchestrationItem {
                instance: self.instance,
                orchestration_name: self.orchestration_name,
                execution_id: self.execution_id,
                version: self.version,
                history,
                messages: self.messages,
                history_error,
                kv_snapshot,
            },
            lock_token: self.lock_token,
            attempt_count: self.attempt_count,
            last_event_id: Some(self.last_event_id),
            history_loaded,
            has_ended: Some(self.has_ended),
            created_at_ms: self.created_at,
            now_ms: Some(self.now),
        }
    }
}

/// A value that holds leases.
pub(crate) trait Leases: Send {
    const KIND: LeaseKind;
    fn tokens(&self) -> Vec<String>;
}

impl Leases for RawTurn {
    const KIND: LeaseKind = LeaseKind::Turn;
    fn tokens(&self) -> Vec<String> {
        vec![self.lock_token.clone()]
    }
}

impl Leases for Vec<FetchedWork> {
    const KIND: LeaseKind = LeaseKind::Activity;
    fn tokens(&self) -> Vec<String> {
        self.iter().map(|activity| activity.lock_token.clone()).collect()
    }
}

/// Leases on their way to a caller. If the caller is dropped before it takes them, they are given back without counting the
/// delivery.
pub(crate) struct Guarded<L: Leases> {
    leases: Option<L>,
    owner: Handle,
}

impl<L: Leases> Guarded<L> {
    pub(crate) fn new(leases: L, owner: Handle) -> Self {
        Self { leases: Some(leases), owner }
    }

    /// Hands the leases to the caller.
    pub(crate) fn take(mut self) -> Option<L> {
        self.leases.take()
    }
}

impl<L: Leases> Drop for Guarded<L> {
    fn drop(&mut self) {
        for token in self.leases.take().iter().flat_map(Leases::tokens) {
            self.owner.release(L::KIND, token);
        }
    }
}
