//! What orchestration code and the engine share while an execution is in memory.

use crate::decide::{Emitted, Successor};
use crate::future::Raw;
use crate::op::kv::KvValue;
use crate::op::queue::Queues;
use crate::op::signal::Signals;
use crate::version::Rules;
use outlast_model::codec::Codec;
use outlast_model::limits::Limits;
use std::collections::{BTreeMap, VecDeque};
use std::panic::Location;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Where in the author's source a durable call was made.
pub(crate) type Site = &'static Location<'static>;

/// A durable future, as the engine sees it.
///
/// | stage | drop | outcome arrives | poll |
/// |---|---|---|---|
/// | open | dropped | ready | open, keeps the waker |
/// | ready | dropped | - | taken |
/// | taken, dropped | - | - | - |
pub(crate) struct Slot {
    pub(crate) what: What,
    /// Where it was asked for.
    pub(crate) site: Site,
    /// The scheduling event, once there is one.
    pub(crate) event_id: Option<u64>,
    pub(crate) stage: Stage,
    pub(crate) waker: Option<Waker>,
    /// A note of the drop is in history.
    pub(crate) drop_noted: bool,
    /// An outcome was delivered.
    pub(crate) answered: bool,
    /// Which attempt of its retry policy it is; 1 for everything else.
    pub(crate) attempt: u32,
}

/// What a slot waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    Activity,
    Timer,
    Child,
    Signal { name: String },
    Queue { name: String },
}

pub(crate) enum Stage {
    Open,
    Ready(Raw),
    Taken,
    Dropped,
}

/// A trace line of the author's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceLine {
    /// As the author wrote it.
    pub level: String,
    /// The text.
    pub message: String,
    /// Where the engine quotes the text of an error: the same line without it, for logs that are to hold no payloads.
    pub without_quote: Option<String>,
}

pub(crate) struct State {
    /// How typed values are written.
    pub(crate) codec: Codec,
    pub(crate) rules: Rules,
    pub(crate) limits: Arc<Limits>,
    /// The time of this turn.
    pub(crate) now_ms: u64,
    /// Whether the poll that runs was caused by something that is stored already.
    pub(crate) replaying: bool,
    pub(crate) slots: Vec<Slot>,
    pub(crate) emitted: VecDeque<Emitted>,
    /// The stored decisions that the walk has not reached, in order; for a key write, its time stamp. The n-th emitted
    /// action belongs to the n-th of these.
    pub(crate) ahead: VecDeque<Option<u64>>,
    /// New decisions since something came in: the fan-out that one message causes.
    pub(crate) new_decisions: usize,
    pub(crate) kv: BTreeMap<String, KvValue>,
    pub(crate) custom_status: Option<String>,
    pub(crate) traces: Vec<TraceLine>,
    pub(crate) warnings: Vec<String>,
    pub(crate) violation: Option<String>,
    pub(crate) successor: Option<Successor>,
    pub(crate) signals: Signals,
    pub(crate) queues: Queues,
    /// Futures dropped before their outcome, whose drop is not in history yet.
    pub(crate) dropped: Vec<u64>,
    /// Under the legacy rules: bound waits that were open when the code last ran.
    legacy_waits: Vec<u64>,
    /// Futures that somebody polled and that are open.
    waiting: usize,
    /// The last durable call, for the message about foreign futures.
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
            signals: Signals::new(rules),
            queues: Queues::new(rules),
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

    /// Something came in from outside, so that more decisions may follow. They are counted by what causes them and not
    /// by turn, or how messages happen to be split over turns would decide who is over the limit.
    pub(crate) fn received(&mut self) {
        self.new_decisions = 0;
    }

    // -- what durable futures do ---------------------------------------------------------------------------------

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

    /// Queue messages, and positional events under the legacy rules, are assigned when they are asked for.
    fn settle_lazily(&mut self, token: u64) {
        let slot = &self.slots[index(token)];
        let (Stage::Open, Some(event_id)) = (&slot.stage, slot.event_id) else { return };
        let data = match &slot.what {
            What::Queue { name } => self.queues.take(name, event_id),
            What::Signal { name } => self.signals.take(name, event_id),
            _ => None,
        };
        if let Some(data) = data {
            self.received();
            self.slot_mut(token).stage = Stage::Ready(Raw::Data(data));
        }
    }

    /// Returns whom to wake, after the lock is released.
    pub(crate) fn drop_future(&mut self, token: u64) -> Vec<Waker> {
        let slot = self.slot_mut(token);
        let waited = slot.waker.take().is_some();
        let was_open = matches!(slot.stage, Stage::Open);
        slot.stage = Stage::Dropped;
        let (what, bound) = (slot.what.clone(), slot.event_id);
        self.waiting -= usize::from(waited);
        self.dropped.push(token);
        let Some(event_id) = bound.filter(|_| was_open && !self.rules.legacy) else { return Vec::new() };
        let next = match what {
            What::Signal { name } => {
                self.signals.cancel(&name, event_id);
                None
            }
            What::Queue { name } => self.queues.cancel(&name, event_id),
            _ => None,
        };
        next.and_then(|token| self.waker_of(token)).into_iter().collect()
    }

    // -- what the walk does --------------------------------------------------------------------------------------

    pub(crate) fn slot(&self, token: u64) -> &Slot {
        &self.slots[index(token)]
    }

    pub(crate) fn slot_mut(&mut self, token: u64) -> &mut Slot {
        &mut self.slots[index(token)]
    }

    /// The outcome of an operation has arrived; returns whom to wake.
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

    /// Whom to wake when a slot that is still open may have become ready.
    pub(crate) fn waker_of(&self, token: u64) -> Option<Waker> {
        self.slot(token).waker.clone()
    }

    /// Waits of the given kind that are open as far as history knows, by event: neither read nor noted as dropped.
    pub(crate) fn open_waits(&self, is_kind: impl Fn(&What) -> bool) -> Vec<u64> {
        let is_open = |slot: &&Slot| match slot.stage {
            Stage::Open => true,
            Stage::Dropped => !slot.drop_noted,
            Stage::Ready(_) | Stage::Taken => false,
        };
        let open = self.slots.iter().filter(is_open).filter(|slot| is_kind(&slot.what));
        open.filter_map(|slot| slot.event_id).collect()
    }

    /// Under the legacy rules a wait reads whatever is at its place when the code runs, and places move.
    pub(crate) fn wait_by_legacy_rules(&mut self, token: u64) {
        if self.rules.legacy && matches!(self.slot(token).what, What::Signal { .. } | What::Queue { .. }) {
            self.legacy_waits.push(token);
        }
    }

    /// Whom to wake under the legacy rules whenever the code runs: every open wait.
    pub(crate) fn legacy_wakers(&mut self) -> Vec<Waker> {
        let mut waits = std::mem::take(&mut self.legacy_waits);
        waits.retain(|token| matches!(self.slot(*token).stage, Stage::Open));
        let wakers = waits.iter().filter_map(|token| self.waker_of(*token)).collect();
        self.legacy_waits = waits;
        wakers
    }

    /// Whether any durable future is awaited.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting > 0
    }
}

/// Tokens count from 1.
fn index(token: u64) -> usize {
    usize::try_from(token).map_or(usize::MAX, |token| token.wrapping_sub(1))
}
