//! Leased turns and activities on their way from the server to the caller of a fetch.

use crate::ask::{ActivityAsk, TurnAsk};
use crate::in_doubt::release;
use crate::parked::{Caller, Fetch, Parked};
use crate::request::{Lease, Seen};
use crate::shared::Shared;
use outlast_provider::ClassifiedError;
use outlast_provider_kit::token::Secret;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Answers the caller of a fetch: leases, `None` if there are none, or an error.
pub(crate) type LeaseSender<L> = oneshot::Sender<Result<Option<Guarded<L>>, ClassifiedError>>;

pub(crate) type TurnFetch = Fetch<TurnAsk, LeaseSender<RawTurn>>;
pub(crate) type ActivityFetch = Fetch<ActivityAsk, LeaseSender<Vec<RawActivity>>>;
pub(crate) type ParkedTurns = Parked<TurnAsk, LeaseSender<RawTurn>>;
pub(crate) type ParkedActivities = Parked<ActivityAsk, LeaseSender<Vec<RawActivity>>>;

impl<T> Caller for oneshot::Sender<T> {
    fn is_gone(&self) -> bool {
        self.is_closed()
    }
}

/// A leased turn as the server hands it out; its caller decodes it.
#[derive(Debug)]
pub(crate) struct RawTurn {
    pub(crate) secret: Secret,
    pub(crate) instance: String,
    /// Name, version, execution and last event, if the instance has a row.
    pub(crate) row: Option<(String, String, u64, u64)>,
    pub(crate) created_at: Option<u64>,
    pub(crate) has_ended: bool,
    /// Whether an instance without a row has a history.
    pub(crate) has_history: bool,
    /// The time at which a delayed start becomes visible, for an instance without a row.
    pub(crate) start_due: Option<u64>,
    pub(crate) now: u64,
    /// The instance has more visible messages than a fetch takes.
    pub(crate) is_partial: bool,
    /// The bytes of the texts, if the fetch has left them out: the caller reads them.
    pub(crate) bytes_apart: Option<usize>,
    pub(crate) messages: Vec<RawMessage>,
}

#[derive(Debug)]
pub(crate) struct RawMessage {
    pub(crate) id: i64,
    pub(crate) text: String,
    pub(crate) available_at: u64,
    pub(crate) attempts: u32,
}

/// A leased activity as the server hands it out.
#[derive(Debug)]
pub(crate) struct RawActivity {
    pub(crate) secret: Secret,
    pub(crate) id: i64,
    pub(crate) text: String,
    pub(crate) instance: String,
    pub(crate) attempts: u32,
    pub(crate) orchestration: Option<(String, String)>,
    pub(crate) now: u64,
}

/// A value that holds leases.
pub(crate) trait Leases: Send {
    fn leases(&self) -> Vec<Lease>;
}

impl Leases for RawTurn {
    fn leases(&self) -> Vec<Lease> {
        let messages = i32::try_from(self.messages.len()).unwrap_or(i32::MAX);
        let (current_execution, is_partial) = (0, self.is_partial);
        let seen = Seen { current_execution, messages, is_partial, instance: self.instance.clone() };
        vec![Lease::Turn { secret: self.secret, seen }]
    }
}

impl Leases for Vec<RawActivity> {
    fn leases(&self) -> Vec<Lease> {
        let lease = |activity: &RawActivity| Lease::Activity { secret: activity.secret, id: activity.id };
        self.iter().map(lease).collect()
    }
}

/// Leases on their way to a caller. If the caller goes away before it takes them, they are given back and the delivery is not
/// counted.
pub(crate) struct Guarded<L: Leases> {
    leases: Option<L>,
    owner: Arc<Shared>,
}

impl<L: Leases> Guarded<L> {
    pub(crate) fn new(leases: L, owner: &Arc<Shared>) -> Self {
        Self { leases: Some(leases), owner: Arc::clone(owner) }
    }

    /// The leases, which stay guarded.
    pub(crate) fn peek(&self) -> Option<&L> {
        self.leases.as_ref()
    }

    /// The leases, which stay guarded.
    pub(crate) fn peek_mut(&mut self) -> Option<&mut L> {
        self.leases.as_mut()
    }

    /// Passes the leases to the caller, which gives them back itself from now on.
    pub(crate) fn take(mut self) -> Option<L> {
        self.leases.take()
    }
}

impl<L: Leases> Drop for Guarded<L> {
    fn drop(&mut self) {
        for lease in self.leases.take().iter().flat_map(Leases::leases) {
            release(&self.owner, lease);
        }
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
        self.0.push((caller, Guarded::new(leases, owner)));
    }

    /// Sends the leases to their callers. The guard gives back the leases of a caller that has gone away.
    pub(crate) fn send(self) {
        for (caller, leases) in self.0 {
            drop(caller.send(Ok(Some(leases))));
        }
    }
}
