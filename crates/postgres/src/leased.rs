//! Leased turns and activities in transit from the server to the caller of a fetch.

use crate::ask::{ActivityAsk, TurnAsk};
use crate::in_doubt::release;
use crate::parked::{Fetch, ParkedFetches};
use crate::request::Lease;
use crate::shared::Shared;
use outlast_provider::{ClassifiedError, WorkNotes};
use outlast_provider_kit::leased::TakesBack;
use outlast_provider_kit::token::Secret;
use outlast_provider_kit::{ResolvedTurn, TurnAtFetch};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Answers the caller of a fetch: leases, `None` if there are none, or an error.
pub(crate) type LeaseSender<L> = oneshot::Sender<Result<Option<Guarded<L>>, ClassifiedError>>;

pub(crate) type TurnFetch = Fetch<TurnAsk, LeaseSender<RawTurn>>;
pub(crate) type ActivityFetch = Fetch<ActivityAsk, LeaseSender<Vec<RawActivity>>>;
pub(crate) type ParkedTurnFetches = ParkedFetches<TurnAsk, LeaseSender<RawTurn>>;
pub(crate) type ParkedActivityFetches = ParkedFetches<ActivityAsk, LeaseSender<Vec<RawActivity>>>;

/// A leased turn in the server's form; the caller of the fetch decodes it.
#[derive(Debug)]
pub(crate) struct RawTurn {
    pub(crate) secret: Secret,
    pub(crate) instance: String,
    /// The current execution, if the instance has a row.
    pub(crate) row: Option<ResolvedTurn>,
    pub(crate) created_at: Option<u64>,
    pub(crate) has_ended: bool,
    /// Whether an instance without a row has a history.
    pub(crate) has_history: bool,
    /// The time at which a delayed start becomes visible, for an instance without a row.
    pub(crate) start_due: Option<u64>,
    pub(crate) now: u64,
    /// Whether the instance has more visible messages than a fetch takes.
    pub(crate) is_partial: bool,
    /// The bytes of the texts, if the fetch has left the texts out: then the caller reads them.
    pub(crate) left_out_bytes: Option<usize>,
    pub(crate) messages: Vec<RawMessage>,
}

#[derive(Debug)]
pub(crate) struct RawMessage {
    pub(crate) id: i64,
    pub(crate) text: String,
    pub(crate) available_at: u64,
    pub(crate) attempts: u32,
}

impl RawTurn {
    /// The facts for the token of a lease that covers this many messages.
    pub(crate) fn at_fetch(&self, current_execution: u64, messages: usize) -> TurnAtFetch<String> {
        let (is_partial, instance) = (self.is_partial, self.instance.clone());
        TurnAtFetch { current_execution, messages, is_partial, instance }
    }
}

/// A leased activity in the server's form; the caller of the fetch decodes it.
#[derive(Debug)]
pub(crate) struct RawActivity {
    pub(crate) secret: Secret,
    pub(crate) id: i64,
    pub(crate) text: String,
    pub(crate) instance: String,
    pub(crate) attempts: u32,
    pub(crate) notes: WorkNotes,
    pub(crate) orchestration: Option<(String, String)>,
    pub(crate) now: u64,
}

/// A value that holds leases.
pub(crate) trait Leases: Send {
    fn leases(&self) -> Vec<Lease>;
}

impl Leases for RawTurn {
    fn leases(&self) -> Vec<Lease> {
        vec![Lease::Turn { secret: self.secret, at_fetch: self.at_fetch(0, self.messages.len()) }]
    }
}

impl Leases for Vec<RawActivity> {
    fn leases(&self) -> Vec<Lease> {
        let lease = |activity: &RawActivity| Lease::Activity { secret: activity.secret, id: activity.id };
        self.iter().map(lease).collect()
    }
}

/// Leases in transit to a caller. If the caller is gone, the store takes the leases back.
pub(crate) type Guarded<L> = outlast_provider_kit::Guarded<L, Arc<Shared>>;

impl<L: Leases> TakesBack<L> for Shared {
    fn take_back(&self, leases: L) {
        leases.leases().into_iter().for_each(|lease| release(self, lease));
    }
}

/// Leases for fetches that a transaction has served, sent after the scheduler knows of them.
pub(crate) struct Deliveries<L: Leases>(Vec<(LeaseSender<L>, Guarded<L>)>);

impl<L: Leases> Default for Deliveries<L> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<L: Leases> Deliveries<L> {
    pub(crate) fn add(&mut self, caller: LeaseSender<L>, leases: L, owner: &Arc<Shared>) {
        self.0.push((caller, Guarded::new(leases, Arc::clone(owner))));
    }

    /// Sends the leases to their callers. The guard gives back the leases of a dropped caller.
    pub(crate) fn send(self) {
        for (caller, leases) in self.0 {
            drop(caller.send(Ok(Some(leases))));
        }
    }
}
