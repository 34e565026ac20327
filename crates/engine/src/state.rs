//! State that orchestration code and the engine share while an execution is in memory.

use crate::cancel::Cancellation;
use crate::decide::Emitted;
use crate::future::Raw;
use crate::op::continue_as_new::Successor;
use crate::op::kv::KvValue;
use crate::op::queue::Queues;
use crate::op::signal::Signals;
use crate::op::{Bound, Held, Op};
use crate::patch::{self, Patch};
use crate::version::Rules;
use outlast_model::limits::Limits;
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::panic::Location;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The place of a durable call in the source.
pub(crate) type Site = &'static Location<'static>;

/// The engine's record of a durable future.
///
/// | stage | drop | outcome arrives | poll |
/// |---|---|---|---|
/// | open | dropped | ready | open, keeps the waker |
/// | ready | dropped | - | taken |
/// | taken, dropped | - | - | - |
pub(crate) struct FutureState {
    pub(crate) op: Op,
    /// The inbox that the future waits on, if it waits on one: the name of an event or queue.
    pub(crate) inbox_name: Option<String>,
    /// The place of the call.
    pub(crate) site: Site,
    /// The scheduling event, once there is one.
    pub(crate) event_id: Option<u64>,
    pub(crate) stage: Stage,
    pub(crate) waker: Option<Waker>,
    /// History holds a note of the drop.
    pub(crate) drop_noted: bool,
    /// An outcome was delivered.
    pub(crate) answered: bool,
    /// The attempt of the retry policy; 1 for an operation without a policy.
    pub(crate) attempt: u32,
}

/// Data that clients sent, and the waits for it.
pub(crate) struct Inboxes {
    pub(crate) signals: Signals,
    pub(crate) queues: Queues,
}

pub(crate) enum Stage {
    Open,
    Ready(Raw),
    Taken,
    Dropped,
}

/// A trace line of orchestration code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceLine {
    /// The level that the code gave.
    pub level: String,
    /// The text.
    pub message: String,
    /// The same line without the error text that it quotes, for logs that must not hold payloads.
    pub without_quote: Option<String>,
}

pub(crate) struct State {
    pub(crate) rules: Rules,
    pub(crate) limits: Arc<Limits>,
    /// The time of this turn.
    pub(crate) now_ms: u64,
    /// Whether the code runs because of an event that was stored before this turn.
    pub(crate) replaying: bool,
    pub(crate) futures: Vec<FutureState>,
    pub(crate) emitted: VecDeque<Emitted>,
    /// The stored decisions that are not applied yet, in order, with their stored time; without the markers of patches. The
    /// n-th emitted action belongs to the n-th of these.
    pub(crate) ahead: VecDeque<Option<u64>>,
    /// Patches of the history, and those that the code asked for.
    pub(crate) patches: BTreeMap<String, Patch>,
    /// The history that is replayed had an ending.
    pub(crate) history_ended: bool,
    /// New decisions since the last message: the fan-out that one message causes.
    pub(crate) new_decisions: usize,
    pub(crate) kv: BTreeMap<String, KvValue>,
    pub(crate) custom_status: Option<String>,
    pub(crate) traces: Vec<TraceLine>,
    pub(crate) warnings: Vec<String>,
    pub(crate) violation: Option<String>,
    pub(crate) successor: Option<Successor>,
    pub(crate) inboxes: Inboxes,
    /// Dropped futures whose drop is not noted in history.
    pub(crate) dropped: Vec<u64>,
    /// Under the legacy rules: bound waits that were open at the last poll of the code.
    legacy_waits: Vec<u64>,
    /// Number of open futures that were polled.
    waiting: usize,
    /// The last durable call, for error messages.
    pub(crate) last_call: Option<(&'static str, Site)>,
    pub(crate) cancellation: Cancellation,
    /// The data of the typed layer.
    pub(crate) extension: Option<Arc<dyn Any + Send + Sync>>,
}

impl State {
    pub(crate) fn new(
        rules: Rules,
        limits: Arc<Limits>,
        kv: BTreeMap<String, KvValue>,
        status: Option<String>,
    ) -> Self {
        Self {
            rules,
            limits,
            now_ms: 0,
            replaying: false,
            futures: Vec::new(),
            emitted: VecDeque::new(),
            ahead: VecDeque::new(),
            patches: BTreeMap::new(),
            history_ended: false,
            new_decisions: 0,
            kv: patch::without_markers(kv),
            custom_status: status,
            traces: Vec::new(),
            warnings: Vec::new(),
            violation: None,
            successor: None,
            inboxes: Inboxes { signals: Signals::new(rules), queues: Queues::new(rules) },
            dropped: Vec::new(),
            legacy_waits: Vec::new(),
            waiting: 0,
            last_call: None,
            cancellation: Cancellation::default(),
            extension: None,
        }
    }

    pub(crate) fn begin_turn(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        self.new_decisions = 0;
    }

    /// Restarts the count of decisions when the code receives a message. Decisions are counted per message and not per
    /// turn, so that the split of messages into turns does not decide whether an instance is over the limit.
    pub(crate) fn received(&mut self) {
        self.new_decisions = 0;
    }

    // -- calls of durable futures --------------------------------------------------------------------------------

    pub(crate) fn poll(&mut self, token: u64, cx: &Context<'_>) -> Poll<Raw> {
        self.settle_lazily(token);
        let future = self.future_state_mut(token);
        if let Stage::Ready(_) = future.stage
            && let Stage::Ready(raw) = std::mem::replace(&mut future.stage, Stage::Taken)
        {
            let waited = future.waker.take().is_some();
            self.waiting -= usize::from(waited);
            return Poll::Ready(raw);
        }
        match &mut future.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => {
                future.waker = Some(cx.waker().clone());
                self.waiting += 1;
            }
        }
        Poll::Pending
    }

    /// Assigns a queue message, or under the legacy rules a positional event, when its future is polled.
    fn settle_lazily(&mut self, token: u64) {
        let future = &self.futures[index(token)];
        let (Stage::Open, Some(event_id), Some(inbox_name)) =
            (&future.stage, future.event_id, &future.inbox_name)
        else {
            return;
        };
        if let Some(data) = future.op.take(&mut self.inboxes, inbox_name, event_id) {
            self.received();
            self.future_state_mut(token).stage = Stage::Ready(Raw::Data(data));
        }
    }

    /// Returns the waker to wake after the lock is released.
    pub(crate) fn drop_future(&mut self, token: u64) -> Option<Waker> {
        let future = self.future_state_mut(token);
        let waited = future.waker.take().is_some();
        let was_open = matches!(future.stage, Stage::Open);
        future.stage = Stage::Dropped;
        self.waiting -= usize::from(waited);
        self.dropped.push(token);
        let next = if was_open && !self.rules.legacy { self.release(token) } else { None };
        next.and_then(|token| self.waker_of(token))
    }

    /// Enters the wait of a future that has its event into the inbox of its operation.
    pub(crate) fn bind_wait(&mut self, token: u64) -> Held {
        let future = &self.futures[index(token)];
        let (Some(inbox_name), Some(event_id)) = (&future.inbox_name, future.event_id) else {
            return Held::Nothing;
        };
        let is_dropped = matches!(future.stage, Stage::Dropped);
        future.op.bind(&mut self.inboxes, Bound { inbox_name, event_id, token, is_dropped })
    }

    /// Removes the wait of a future from its inbox; returns the token of the wait that can read data because of that.
    pub(crate) fn release(&mut self, token: u64) -> Option<u64> {
        let future = &self.futures[index(token)];
        let (Some(inbox_name), Some(event_id)) = (&future.inbox_name, future.event_id) else { return None };
        future.op.release(&mut self.inboxes, inbox_name, event_id)
    }

    // -- calls of `walk.rs` --------------------------------------------------------------------------------------

    pub(crate) fn future_state(&self, token: u64) -> &FutureState {
        &self.futures[index(token)]
    }

    pub(crate) fn future_state_mut(&mut self, token: u64) -> &mut FutureState {
        &mut self.futures[index(token)]
    }

    /// Resolves a future with its outcome; returns the waker to wake.
    pub(crate) fn settle(&mut self, token: u64, raw: Raw) -> Option<Waker> {
        let future = self.future_state_mut(token);
        if !matches!(future.stage, Stage::Open) {
            return None;
        }
        future.stage = Stage::Ready(raw);
        let waker = future.waker.take();
        self.waiting -= usize::from(waker.is_some());
        waker
    }

    /// The waker of an open future.
    pub(crate) fn waker_of(&self, token: u64) -> Option<Waker> {
        self.future_state(token).waker.clone()
    }

    /// Waits on an inbox that are open in history, by event: neither read nor noted as dropped.
    pub(crate) fn open_waits(&self) -> Vec<(Op, u64)> {
        let is_open = |future: &&FutureState| match future.stage {
            Stage::Open => true,
            Stage::Dropped => !future.drop_noted,
            Stage::Ready(_) | Stage::Taken => false,
        };
        let open = self.futures.iter().filter(|future| future.inbox_name.is_some()).filter(is_open);
        open.filter_map(|future| Some((future.op, future.event_id?))).collect()
    }

    /// Enters a wait that is woken at every poll. Under the legacy rules the place of a wait, and so its data, can change.
    pub(crate) fn wait_by_legacy_rules(&mut self, token: u64) {
        if self.rules.legacy && self.future_state(token).inbox_name.is_some() {
            self.legacy_waits.push(token);
        }
    }

    /// The wakers of all open waits under the legacy rules.
    pub(crate) fn legacy_wakers(&mut self) -> Vec<Waker> {
        let mut waits = std::mem::take(&mut self.legacy_waits);
        waits.retain(|token| matches!(self.future_state(*token).stage, Stage::Open));
        let wakers = waits.iter().filter_map(|token| self.waker_of(*token)).collect();
        self.legacy_waits = waits;
        wakers
    }

    /// Whether a child that the code dropped has no outcome. A child whose id was refused has no event and gets none.
    pub(crate) fn has_dropped_children(&self) -> bool {
        let is_sent = |token: u64, future: &FutureState| {
            future.event_id.is_some() || self.emitted.iter().any(|emitted| emitted.token == Some(token))
        };
        (1..).zip(&self.futures).any(|(token, future)| {
            future.op == Op::Child
                && matches!(future.stage, Stage::Dropped)
                && !future.answered
                && is_sent(token, future)
        })
    }

    /// Whether the code awaits a durable future.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting > 0 || self.cancellation.is_awaited()
    }
}

/// Tokens count from 1.
fn index(token: u64) -> usize {
    usize::try_from(token).map_or(usize::MAX, |token| token.wrapping_sub(1))
}
