//! Bounds on the history and on the messages that one call reads.

use crate::{KvEntry, LoadedTurn};
use outlast_model::Event;
use std::collections::HashMap;

/// The largest history that a caller holds in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryBound {
    /// The most events.
    pub events: usize,
    /// The most bytes of text in all events, by [`Event::text_bytes`].
    pub bytes: usize,
}

impl HistoryBound {
    /// Whether this much is within the bound.
    pub fn holds(&self, events: usize, bytes: usize) -> bool {
        events <= self.events && bytes <= self.bytes
    }

    /// Whether a history with this number of events and bytes of stored JSON can be within the bound. `true` may be wrong,
    /// `false` is never wrong: JSON takes at most six bytes for one byte of text.
    pub fn may_hold_stored(&self, events: u64, stored_bytes: u64) -> bool {
        // Ids, version and time stamp of one event. Ids of instances are long where children nest.
        const ENVELOPE: u64 = 16 * 1024;
        let most = (self.bytes as u64).saturating_mul(6).saturating_add(events.saturating_mul(ENVELOPE));
        events <= self.events as u64 && stored_bytes <= most
    }
}

/// The result of [`Provider::load_turn_within`](crate::Provider::load_turn_within).
#[derive(Debug, Clone)]
pub enum BoundedTurn {
    /// The whole history.
    Whole(LoadedTurn),
    /// An outline of a history that is larger than the bound.
    Oversized(OversizedTurn),
}

/// A history that is larger than the bound and was not read.
#[derive(Debug, Clone)]
pub struct OversizedTurn {
    /// How many events it has.
    pub events: u64,
    /// The size of its stored text.
    pub stored_bytes: u64,
    /// The first event, the terminal events and the last event of the history.
    pub outline: Vec<Event>,
    /// As in [`LoadedTurn`].
    pub kv_snapshot: HashMap<String, KvEntry>,
}

impl BoundedTurn {
    /// Compares a loaded history with the bound.
    pub fn of(loaded: LoadedTurn, bound: HistoryBound) -> Self {
        let bytes = loaded.history.iter().map(Event::text_bytes).fold(0, usize::saturating_add);
        if loaded.history_error.is_some() || bound.holds(loaded.history.len(), bytes) {
            return Self::Whole(loaded);
        }
        let LoadedTurn { history, kv_snapshot, .. } = loaded;
        let (events, last) = (history.len(), history.len().saturating_sub(1));
        let outline = history.into_iter().enumerate();
        let outline = outline.filter(|(place, event)| *place == 0 || *place == last || event.is_terminal());
        Self::Oversized(OversizedTurn {
            events: events as u64,
            stored_bytes: bytes as u64,
            outline: outline.map(|(_, event)| event).collect(),
            kv_snapshot,
        })
    }
}

/// The number and size of the messages that one fetch of a turn takes. An instance with more messages is read in several turns.
///
/// The bound is an option of the store, so it also limits fetches through a wrapper. Messages are taken in this
/// order: the start of a successor, other starts, then all others; those of one kind in the order of their availability and then
/// of their arrival. The fetch takes messages as long as both numbers hold, at least one, and delivers them in the order of
/// availability. Starts go first because a turn without the start of its execution could do nothing. The other messages are
/// fetched after the commit of the turn. If the turn is abandoned with a delay, they wait for the same delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageBound {
    /// The largest number of messages.
    pub messages: usize,
    /// The largest number of bytes of stored text. A single message that is larger is delivered alone.
    pub bytes: usize,
}

impl MessageBound {
    /// No more than these.
    pub const fn new(messages: usize, bytes: usize) -> Self {
        Self { messages, bytes }
    }

    /// Whether a fetch that has taken this much takes one more message of this size.
    pub fn takes(&self, messages: usize, bytes: usize, next: usize) -> bool {
        messages == 0 || (messages < self.messages && bytes.saturating_add(next) <= self.bytes)
    }
}

impl Default for MessageBound {
    fn default() -> Self {
        Self::new(1_000, 8 << 20)
    }
}
