//! Leases on their way from the writer to the caller of a fetch, and back.

use crate::command::Handle;
use outlast_provider::{ClassifiedError, FetchedTurn, FetchedWork, KvEntry};
use outlast_provider_kit::leased::TakesBack;
use outlast_provider_kit::{LeasedTurn, rows};
use std::collections::HashMap;
use std::time::Duration;
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

/// A lease to give back.
pub(crate) struct Abandon {
    pub(crate) token: String,
    /// How long no fetch takes the item.
    pub(crate) delay: Option<Duration>,
    /// Whether the delivery is not counted.
    pub(crate) ignore_attempt: bool,
}

/// A lease to extend.
pub(crate) struct Renew {
    pub(crate) token: String,
    pub(crate) extend_for: Duration,
}

/// A leased turn as the writer hands it out; its caller decodes the history, so that the writer need not.
#[derive(Debug)]
pub(crate) struct RawTurn {
    pub(crate) turn: LeasedTurn,
    /// The texts of the events and the key-value snapshot, if the fetch asked for the history.
    pub(crate) replay: Option<(Vec<String>, HashMap<String, KvEntry>)>,
    /// The reason why a row that the turn needs cannot be read.
    pub(crate) damage: Option<String>,
}

impl RawTurn {
    /// The turn with its history decoded.
    pub(crate) fn into_fetched(self) -> FetchedTurn {
        let Self { turn, replay, damage } = self;
        let loaded = replay.map(|(texts, kv_snapshot)| {
            let texts = texts.iter().map(String::as_str);
            rows::decode_turn(&turn.instance, turn.resolved.execution_id, texts, kv_snapshot)
        });
        turn.into_fetched(loaded, damage)
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
        vec![self.turn.lock_token.clone()]
    }
}

impl Leases for Vec<FetchedWork> {
    const KIND: LeaseKind = LeaseKind::Activity;
    fn tokens(&self) -> Vec<String> {
        self.iter().map(|activity| activity.lock_token.clone()).collect()
    }
}

/// Leases on their way to a caller; without a caller, the writer takes them back.
pub(crate) type Guarded<L> = outlast_provider_kit::Guarded<L, Handle>;

impl<L: Leases> TakesBack<L> for Handle {
    fn take_back(&self, leases: L) {
        for token in leases.tokens() {
            self.release(L::KIND, token);
        }
    }
}
