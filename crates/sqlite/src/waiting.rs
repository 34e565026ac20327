//! Fetches on their way to a lease.

use crate::command::Cx;
use crate::db::Result;
use crate::fetch::{self, Horizons};
use crate::handle::Handle;
use crate::work;
use outlast_model::WorkItem;
use outlast_provider::{
    ClassifiedError, DispatcherCapabilityFilter, FetchedWork, KvEntry, MessageBound, SessionFetchConfig,
    TagFilter,
};
use std::collections::HashMap;
use tokio::sync::oneshot;

/// Which queue a lease belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseKind {
    Turn,
    Work,
}

/// What a fetch of a turn asks for.
#[derive(Debug, Clone)]
pub(crate) struct TurnAsk {
    pub(crate) lock_ms: u64,
    pub(crate) filter: Option<DispatcherCapabilityFilter>,
    pub(crate) with_history: bool,
    /// How long a message for an instance that never starts is kept.
    pub(crate) orphan_life_ms: u64,
    pub(crate) bound: MessageBound,
}

/// A turn as the writer hands it out: texts are decoded by the caller, outside of the writer.
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
    /// Event texts and key-value snapshot, if they were asked for.
    pub(crate) replay: Option<(Vec<String>, HashMap<String, KvEntry>)>,
    /// Why a row that the turn needs cannot be read.
    pub(crate) damage: Option<String>,
}

/// What a fetch of activities asks for.
#[derive(Debug, Clone)]
pub(crate) struct WorkAsk {
    pub(crate) max_items: usize,
    pub(crate) lock_ms: u64,
    pub(crate) session: Option<SessionFetchConfig>,
    pub(crate) tags: TagFilter,
}

/// What a fetch asks for.
pub(crate) trait Ask: Sized {
    /// What it is given.
    type Leases: Leases;
    /// What fetches that ask for the same are offered in one transaction.
    type Line;
    /// The name that its errors carry.
    const OPERATION: &'static str;

    fn line(&self) -> Self::Line;
    /// Whether the line offers what this asks for.
    fn fits(&self, line: &Self::Line) -> bool;
    /// Whether the line passed over something that a later transaction may give.
    fn has_passed_over(line: &Self::Line) -> bool;
    /// Takes what there is from the line; `waiting` fetches are still to be served, this one included.
    fn fetch(
        &self,
        cx: &mut Cx<'_>,
        line: &mut Self::Line,
        waiting: usize,
        horizons: &mut Horizons,
    ) -> Result<Option<Self::Leases>>;
}

/// How many instances or activities are looked up at a time.
const MAX_LOOKUP: usize = 64;

impl Ask for TurnAsk {
    type Leases = RawTurn;
    type Line = fetch::Line;
    const OPERATION: &'static str = "fetch_orchestration_item";

    fn line(&self) -> fetch::Line {
        fetch::Line::new(self.filter.clone())
    }

    fn fits(&self, line: &fetch::Line) -> bool {
        line.is_for(self)
    }

    fn has_passed_over(line: &fetch::Line) -> bool {
        line.has_passed_over()
    }

    fn fetch(
        &self,
        cx: &mut Cx<'_>,
        line: &mut fetch::Line,
        waiting: usize,
        horizons: &mut Horizons,
    ) -> Result<Option<RawTurn>> {
        fetch::turn(cx, self, line, waiting.min(MAX_LOOKUP), horizons)
    }
}

impl Ask for WorkAsk {
    type Leases = Vec<FetchedWork>;
    type Line = work::Line;
    const OPERATION: &'static str = "fetch_work_item";

    fn line(&self) -> work::Line {
        work::Line::new(self)
    }

    fn fits(&self, line: &work::Line) -> bool {
        line.is_for(self)
    }

    fn has_passed_over(_: &work::Line) -> bool {
        false
    }

    fn fetch(
        &self,
        cx: &mut Cx<'_>,
        line: &mut work::Line,
        waiting: usize,
        horizons: &mut Horizons,
    ) -> Result<Option<Vec<FetchedWork>>> {
        work::fetch(cx, self, line, waiting.saturating_mul(self.max_items).min(MAX_LOOKUP), horizons)
    }
}

/// A fetch that waits for its answer.
pub(crate) struct Waiter<A: Ask> {
    pub(crate) ask: A,
    /// Whether it stays when there is nothing.
    pub(crate) parks: bool,
    /// Whether it has not been tried yet.
    pub(crate) fresh: bool,
    pub(crate) reply: oneshot::Sender<std::result::Result<Option<Guarded<A::Leases>>, ClassifiedError>>,
}

impl<A: Ask> Waiter<A> {
    pub(crate) fn is_gone(&self) -> bool {
        self.reply.is_closed()
    }
}

/// Something that holds leases.
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
    const KIND: LeaseKind = LeaseKind::Work;
    fn tokens(&self) -> Vec<String> {
        self.iter().map(|work| work.lock_token.clone()).collect()
    }
}

/// Leases on their way to a caller. If the caller goes away before it takes them, they are given back without
/// counting the delivery.
pub(crate) struct Guarded<L: Leases> {
    leases: Option<L>,
    owner: Handle,
}

impl<L: Leases> Guarded<L> {
    pub(crate) fn new(leases: L, owner: Handle) -> Self {
        Self { leases: Some(leases), owner }
    }

    /// The caller has it now.
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
