//! State that orchestration code and the engine share while an execution is in memory.

use crate::decide::Emitted;
use crate::future::Raw;
use crate::op::continue_as_new::Successor;
use crate::op::kv::KvValue;
use crate::op::queue::Queues;
use crate::op::signal::Signals;
use crate::op::{Bound, Held, Op};
use crate::version::Rules;
use outlast_model::codec::Codec;
use outlast_model::limits::Limits;
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
pub(crate) struct Slot {
    pub(crate) op: Op,
    /// The lane of the operation's inbox that the future waits on, if it waits on one.
    pub(crate) lane: Option<String>,
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
    /// The codec for typed values.
    pub(crate) codec: Codec,
    pub(crate) rules: Rules,
    pub(crate) limits: Arc<Limits>,
    /// The time of this turn.
    pub(crate) now_ms: u64,
    /// Whether the code runs because of an event that was stored before this turn.
    pub(crate) replaying: bool,
    pub(crate) slots: Vec<Slot>,
    pub(crate) emitted: VecDeque<Emitted>,
    /// The stored decisions that are not applied yet, in order, with their stored time. The n-th emitted action belongs to
    /// the n-th of these.
    pub(crate) ahead: VecDeque<Option<u64>>,
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
}

impl State {
    pub(crate) fn new(
        rules: Rules,
        limits: Arc<Limits>,
        kv: BTreeMap<String, KvValue>,
        status: Option<String>,
    ) -> Self {
        Self {
            codec: Codec::default(),
            rules,
            limits,
            now_ms: 0,
            replaying: false,
            slots: Vec::new(),
            emitted: VecDeque::new(),
            ahead: VecDeque::new(),
            new_decisions: 0,
            kv,
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
        let slot = self.slot_mut(token);
        if let Stage::Ready(_) = slot.stage
            && let Stage::Ready(raw) = std::mem::replace(&mut slot.stage, Stage::Taken)
        {
            let waited = slot.waker.take().is_some();
            self.waiting -= usize::from(waited);
            return Poll::Ready(raw);
        }
        match &mut slot.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => {
                slot.waker = Some(cx.waker().clone());
                self.waiting += 1;
            }
        }
        Poll::Pending
    }

    /// Assigns a queue message, or under the legacy rules a positional event, when its future is polled.
    fn settle_lazily(&mut self, token: u64) {
        let slot = &self.slots[index(token)];
        let (Stage::Open, Some(event_id), Some(lane)) = (&slot.stage, slot.event_id, &slot.lane) else {
            return;
        };
        if let Some(data) = slot.op.take(&mut self.inboxes, lane, event_id) {
            self.received();
            self.slot_mut(token).stage = Stage::Ready(Raw::Data(data));
        }
    }

    /// Returns the waker to wake after the lock is released.
    pub(crate) fn drop_future(&mut self, token: u64) -> Option<Waker> {
        let slot = self.slot_mut(token);
        let waited = slot.waker.take().is_some();
        let was_open = matches!(slot.stage, Stage::Open);
        slot.stage = Stage::Dropped;
        self.waiting -= usize::from(waited);
        self.dropped.push(token);
        let next = if was_open && !self.rules.legacy { self.release(token) } else { None };
        next.and_then(|token| self.waker_of(token))
    }

    /// Enters the wait of a future that has its event into the inbox of its operation.
    pub(crate) fn bind_wait(&mut self, token: u64) -> Held {
        let slot = &self.slots[index(token)];
        let (Some(lane), Some(event_id)) = (&slot.lane, slot.event_id) else { return Held::Nothing };
        let is_dropped = matches!(slot.stage, Stage::Dropped);
        slot.op.bind(&mut self.inboxes, Bound { lane, event_id, token, is_dropped })
    }

    /// Removes the wait of a future from its inbox; returns the token of the wait that can read data because of that.
    pub(crate) fn release(&mut self, token: u64) -> Option<u64> {
        let slot = &self.slots[index(token)];
        let (Some(lane), Some(event_id)) = (&slot.lane, slot.event_id) else { return None };
        slot.op.release(&mut self.inboxes, lane, event_id)
    }

    // -- calls of `walk.rs` --------------------------------------------------------------------------------------

    pub(crate) fn slot(&self, token: u64) -> &Slot {
        &self.slots[index(token)]
    }

    pub(crate) fn slot_mut(&mut self, token: u64) -> &mut Slot {
        &mut self.slots[index(token)]
    }

    /// Resolves a future with its outcome; returns the waker to wake.
    pub(crate) fn settle(&mut self, token: u64, raw: Raw) -> Option<Waker> {
        let slot = self.slot_mut(token);
        if !matches!(slot.stage, Stage::Open) {
            return None;
        }
        slot.stage = Stage::Ready(raw);
        let waker = slot.waker.take();
        self.waiting -= usize::from(waker.is_some());
        waker
    }

    /// The waker of an open future.
    pub(crate) fn waker_of(&self, token: u64) -> Option<Waker> {
        self.slot(token).waker.clone()
    }

    /// Waits on an inbox that are open as far as history knows, by event: neither read nor noted as dropped.
    pub(crate) fn open_waits(&self) -> Vec<(Op, u64)> {
        let is_open = |slot: &&Slot| match slot.stage {
            Stage::Open => true,
            Stage::Dropped => !slot.drop_noted,
            Stage::Ready(_) | Stage::Taken => false,
        };
        let open = self.slots.iter().filter(|slot| slot.lane.is_some()).filter(is_open);
        open.filter_map(|slot| Some((slot.op, slot.event_id?))).collect()
    }

    /// Enters a wait that is woken at every poll. Under the legacy rules the place of a wait, and so its data, can change.
    pub(crate) fn wait_by_legacy_rules(&mut self, token: u64) {
        if self.rules.legacy && self.slot(token).lane.is_some() {
            self.legacy_waits.push(token);
        }
    }

    /// The wakers of all open waits under the legacy rules.
    pub(crate) fn legacy_wakers(&mut self) -> Vec<Waker> {
        let mut waits = std::mem::take(&mut self.legacy_waits);
        waits.retain(|token| matches!(self.slot(*token).stage, Stage::Open));
        let wakers = waits.iter().filter_map(|token| self.waker_of(*token)).collect();
        self.legacy_waits = waits;
        wakers
    }

    /// Whether the code awaits a durable future.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting > 0
    }
}

/// Tokens count from 1.
fn index(token: u64) -> usize {
    usize::try_from(token).map_or(usize::MAX, |token| token.wrapping_sub(1))
}
