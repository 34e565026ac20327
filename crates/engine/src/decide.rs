//! What the author's calls do: each is a decision, and waits for its event.

use crate::future::Raw;
use crate::op::kv::KvValue;
use crate::state::{Site, Slot, Stage, State, What};
use outlast_model::{Action, EventKind};

/// A decision that has no event yet.
pub(crate) struct Emitted {
    /// The future that belongs to it, if any.
    pub(crate) token: Option<u64>,
    pub(crate) action: Action,
    pub(crate) site: Site,
}

/// A request to begin the next execution.
#[derive(Debug, Clone)]
pub(crate) struct Successor {
    pub(crate) input: String,
    pub(crate) version: Option<String>,
}

/// How runaway code is stopped: it unwinds with this, without a panic message.
pub(crate) struct Runaway;

impl State {
    /// Asks for an operation that has a future; returns its token.
    pub(crate) fn ask(&mut self, what: What, action: Action, call: &'static str, site: Site) -> u64 {
        let token = self.open_slot(what, Stage::Open, site);
        self.emit(Some(token), action, call, site);
        token
    }

    /// Records a decision without a future.
    pub(crate) fn decide(&mut self, action: Action, call: &'static str, site: Site) {
        self.emit(None, action, call, site);
    }

    /// A future that is ready at once and leaves no trace in history.
    pub(crate) fn answer(&mut self, what: What, raw: Raw, site: Site) -> u64 {
        if self.is_new_decision() {
            self.count(site);
        }
        self.open_slot(what, Stage::Ready(raw), site)
    }

    fn open_slot(&mut self, what: What, stage: Stage, site: Site) -> u64 {
        self.slots.push(Slot {
            what,
            site,
            event_id: None,
            stage,
            waker: None,
            drop_noted: false,
            answered: false,
            attempt: 1,
        });
        self.slots.len() as u64
    }

    fn emit(&mut self, token: Option<u64>, action: Action, call: &'static str, site: Site) {
        self.last_call = Some((call, site));
        if self.is_new_decision() {
            self.count(site);
            // Nothing is decided after a violation.
            if self.violation.is_some() {
                return;
            }
        }
        self.emitted.push_back(Emitted { token, action, site });
    }

    /// Whether the next decision is one that history does not hold. Limits are checked for those only: what was
    /// accepted once replays under any limit.
    pub(crate) fn is_new_decision(&self) -> bool {
        self.ahead.len() <= self.emitted.len()
    }

    /// The time stamp of the stored key write that the next decision belongs to.
    pub(crate) fn recorded_stamp(&self) -> Option<u64> {
        self.ahead.get(self.emitted.len()).copied().flatten()
    }

    /// A stored note of a call that the code no longer makes. The store keeps what it wrote, so the code sees it too.
    pub(crate) fn adopt(&mut self, note: &EventKind) {
        match note {
            EventKind::CustomStatusUpdated { status } => self.custom_status.clone_from(status),
            EventKind::KeyValueSet { key, value, last_updated_at_ms } => {
                let value = KvValue { value: value.clone(), updated_at_ms: *last_updated_at_ms };
                self.kv.insert(key.clone(), value);
            }
            EventKind::KeyValueCleared { key } => {
                self.kv.remove(key);
            }
            EventKind::KeyValuesCleared => self.kv.clear(),
            _ => {}
        }
    }

    /// Fails the instance at the end of this poll. The first violation counts.
    pub(crate) fn violate(&mut self, text: String) {
        if self.is_new_decision() && self.violation.is_none() {
            self.violation = Some(text);
        }
    }

    /// Code that goes on deciding without ever waiting would never come back from its poll, whether or not something
    /// else is wrong with it already.
    fn count(&mut self, site: Site) {
        self.new_decisions += 1;
        let limit = self.limits.decisions_per_turn;
        if self.new_decisions <= limit {
            return;
        }
        self.violation.get_or_insert_with(|| {
            format!(
                "more than {limit} decisions in one turn, the last at {site}: wait between them, split the work over \
                 child orchestrations, or raise limits.decisions_per_turn"
            )
        });
        if !std::thread::panicking() {
            std::panic::resume_unwind(Box::new(Runaway));
        }
    }

    /// Puts a tag on an activity that has no event yet.
    pub(crate) fn tag_activity(&mut self, token: u64, new_tag: String) -> bool {
        let limit = self.limits.tag_bytes;
        let position = self.emitted.iter().rposition(|emitted| emitted.token == Some(token));
        let found = position.and_then(|position| self.emitted.get_mut(position));
        let Some(Action::CallActivity { name, tag, .. }) = found.map(|emitted| &mut emitted.action) else {
            // Nothing was emitted after a violation, so there is nothing to tag.
            return self.violation.is_some();
        };
        let size = new_tag.len();
        let too_long = (size > limit).then(|| {
            format!(
                "Activity '{name}' tag size ({size} bytes) exceeds limit ({limit} bytes): shorten it, or raise \
                 limits.tag_bytes"
            )
        });
        *tag = Some(new_tag);
        let is_new = position.is_some_and(|position| self.ahead.len() <= position);
        if let Some(text) = too_long.filter(|_| is_new && self.violation.is_none()) {
            self.violation = Some(text);
        }
        true
    }
}
