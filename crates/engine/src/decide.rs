//! Durable calls of orchestration code: each call is a decision, which waits for its event.

use crate::future::Raw;
use crate::op::Op;
use crate::state::{FutureState, Site, Stage, State};
use outlast_model::Action;

/// A decision that has no event yet.
pub(crate) struct Emitted {
    /// The future that belongs to it, if any.
    pub(crate) token: Option<u64>,
    pub(crate) action: Action,
    pub(crate) site: Site,
    /// The tag of the activity is a default, which replay does not compare.
    pub(crate) tag_is_default: bool,
}

/// The payload of the unwinding that stops code over the limit of decisions. It prints no panic message.
pub(crate) struct Runaway;

impl State {
    /// Makes a decision that has a future; returns the token of the future. Operations with an inbox pass `inbox_name`.
    pub(crate) fn decide_with_future(
        &mut self,
        op: Op,
        inbox_name: Option<String>,
        action: Action,
        call: &'static str,
        site: Site,
    ) -> u64 {
        let token = self.open_future(op, inbox_name, Stage::Open, site);
        self.emit(Some(token), action, call, site);
        token
    }

    /// Makes a decision without a future.
    pub(crate) fn decide(&mut self, action: Action, call: &'static str, site: Site) {
        self.emit(None, action, call, site);
    }

    /// A future that is ready at once, without a decision.
    pub(crate) fn answer(&mut self, op: Op, raw: Raw, site: Site) -> u64 {
        if self.is_new_decision() {
            self.count(site);
        }
        self.open_future(op, None, Stage::Ready(raw), site)
    }

    fn open_future(&mut self, op: Op, inbox_name: Option<String>, stage: Stage, site: Site) -> u64 {
        self.futures.push(FutureState {
            op,
            inbox_name,
            site,
            event_id: None,
            stage,
            waker: None,
            drop_noted: false,
            answered: false,
            attempt: 1,
        });
        self.futures.len() as u64
    }

    fn emit(&mut self, token: Option<u64>, action: Action, call: &'static str, site: Site) {
        self.last_call = Some((call, site));
        if self.is_new_decision() {
            self.count(site);
            // Decisions after a violation are not emitted.
            if self.violation.is_some() {
                return;
            }
        }
        self.emitted.push_back(Emitted { token, action, site, tag_is_default: false });
    }

    /// Whether history does not hold the next decision. Limits are checked for new decisions only: a stored decision
    /// replays under any limit.
    pub(crate) fn is_new_decision(&self) -> bool {
        self.ahead.len() <= self.emitted.len()
    }

    /// The time that the stored event of the next decision carries, see [`Operation::stored_time`](crate::op::Operation).
    pub(crate) fn stored_time(&self) -> Option<u64> {
        self.ahead.get(self.emitted.len()).copied().flatten()
    }

    /// Fails the instance at the end of this poll. The first violation counts.
    pub(crate) fn violate(&mut self, text: String) {
        if self.is_new_decision() && self.violation.is_none() {
            self.violation = Some(text);
        }
    }

    /// Counts a new decision and stops code over the limit: code that decides without waiting would not return from its
    /// poll. Code with another violation is stopped too.
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
}
