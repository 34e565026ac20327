//! Replay errors. The text names the stored event, the decision of the code, its place in the source, and a remedy.

use crate::context::Identity;
use crate::decide::Emitted;
use crate::op::Op;
use crate::state::Site;
use outlast_model::{Action, ConfigErrorKind, ErrorDetails, Event, INITIAL_EVENT_ID};
use std::panic::Location;

/// The remedy for code that does not match its history.
const ADVICE: &str = "run the code that wrote this history, keep its way for running instances with ctx.patched(..), or \
                      register the changed code as a new version";

/// The remedy for code that lacks a patch of its history: the history is newer than the code, so no old way is to be kept.
const RUN_THE_WRITER: &str = "run the code that wrote this history";

/// A cause beside a change of the code: the decisions of the replay are those of the history, in another order.
const OTHER_ORDER: &str = "if the code has not changed, it decides in another order at each replay: iterate in a fixed order, and take \
                           time and random values from ctx; if it has changed, ";

/// The same for a decision that has another payload only.
const OTHER_PAYLOAD: &str = "if the code has not changed, it makes another payload at each replay: take time and random values from \
                             ctx, and iterate in a fixed order; if it has changed, ";

/// The remedy for a history that no code can have written.
const DAMAGED: &str = "the store is damaged or was changed by hand: restore history and queues from the same backup, or \
                       start the instance anew under another id";

/// A replay error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mismatch {
    text: String,
    place: MismatchPlace,
    /// A cause that is plausible beside a change of the code, as the beginning of the advice.
    cause: &'static str,
    /// Other code can repeat the history; false if no code can.
    is_of_code: bool,
}

/// The place of a replay error: in the history and in the source.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct MismatchPlace {
    /// The stored event that the code does not repeat, if it is known.
    pub event_id: Option<u64>,
    /// The durable call that the code makes instead; if it makes none, its last one.
    pub site: Option<&'static Location<'static>>,
    /// The type of the event that the code asks for instead, if it makes another decision.
    pub decision: Option<&'static str>,
}

impl Mismatch {
    fn of(text: String) -> Self {
        Self { text, place: MismatchPlace::default(), cause: "", is_of_code: false }
    }

    /// A mismatch that other code does not have.
    fn of_code(text: String) -> Self {
        Self { is_of_code: true, ..Self::of(text) }
    }

    fn at(mut self, event_id: u64, site: Option<Site>) -> Self {
        self.place = MismatchPlace { event_id: Some(event_id), site, decision: None };
        self
    }

    /// Adds the advice for code that does not match its history: how to keep the way of the history, unless the history is newer than
    /// the code, and the clauses about patches.
    pub(crate) fn advised(mut self, lacks_patch: bool, clauses: &str) -> Self {
        if self.is_of_code {
            let (cause, advice) = if lacks_patch { ("", RUN_THE_WRITER) } else { (self.cause, ADVICE) };
            self.text.push_str(&format!("; {cause}{advice}{clauses}"));
        }
        self
    }

    pub(crate) fn place(&self) -> MismatchPlace {
        self.place
    }

    pub(crate) fn is_of_code(&self) -> bool {
        self.is_of_code
    }

    pub(crate) fn details(self) -> ErrorDetails {
        ErrorDetails::Configuration {
            kind: ConfigErrorKind::Nondeterminism,
            resource: String::new(),
            message: Some(self.text),
        }
    }

    /// History holds a decision, and the code made none.
    pub(crate) fn nothing_decided(identity: &Identity, op: Op, recorded: &Event, last: LastCall) -> Self {
        let (core, what) = (op.missing(), op.describe(&recorded.kind));
        Self::of_code(format!(
            "{core}: {} is {what}, and the code does not ask for it; {}",
            place(identity, recorded.event_id),
            last_call(last)
        ))
        .at(recorded.event_id, site_of(last))
    }

    /// History holds a decision, and the code made another one: `now`, and later in the same poll `later`.
    pub(crate) fn another_decision<'a>(
        identity: &Identity,
        op: Op,
        recorded: &Event,
        now: &Emitted,
        mut later: impl Iterator<Item = &'a Emitted>,
    ) -> Self {
        let (core, was, is) =
            (op.mismatch(&recorded.kind), op.describe(&recorded.kind), describe(&now.action));
        let (is, cause) = match was == is {
            _ if later.any(|emitted| op.matches(&emitted.action, &recorded.kind)) => (is, OTHER_ORDER),
            true => (format!("{is} with another payload"), OTHER_PAYLOAD),
            false => (is, ""),
        };
        let decision = Op::of_action(&now.action).event(&now.action, 0, 0).map(|event| event.type_name());
        let mut mismatch = Self::of_code(format!(
            "{core}: {} is {was}, and the code now asks for {is} at {}",
            place(identity, recorded.event_id),
            now.site
        ))
        .at(recorded.event_id, Some(now.site));
        (mismatch.place.decision, mismatch.cause) = (decision, cause);
        mismatch
    }

    /// The code ended, and history holds later events.
    pub(crate) fn ended_early(identity: &Identity, event_id: u64, ended: &str, last: LastCall) -> Self {
        Self::of_code(format!(
            "code ended before its history: replaying {}, the code {ended}, where it went on before; {}",
            place(identity, event_id.max(INITIAL_EVENT_ID)),
            last_call(last)
        ))
        .at(event_id.max(INITIAL_EVENT_ID), site_of(last))
    }

    pub(crate) fn not_open(
        identity: &Identity,
        event_id: u64,
        source: u64,
        name: &str,
        site: Option<Site>,
    ) -> Self {
        let why = match site {
            Some(site) => format!("which was asked for at {site} and has its outcome already"),
            None => "which is no scheduled operation".to_string(),
        };
        let place = place(identity, event_id);
        Self::of(format!(
            "completion without open schedule: {place} is {name} for event {source}, {why}; {DAMAGED}"
        ))
        .at(event_id, site)
    }

    pub(crate) fn not_an_activity(identity: &Identity, event_id: u64, source: u64) -> Self {
        Self::of(format!(
            "completion kind mismatch: expected activity: {} completes event {source}, which is none; {DAMAGED}",
            place(identity, event_id)
        ))
    }

    /// `site` is the place of the call that returned the first of the futures.
    pub(crate) fn not_dropped(identity: &Identity, what: &str, recorded: &[u64], site: Site) -> Self {
        Self::of_code(format!(
            "cancellation mismatch ({what}): the history of {} says that the code dropped the futures of events \
             {recorded:?}, and it did not drop them (the first is asked for at {site})",
            instance(identity)
        ))
        .at(recorded.first().copied().unwrap_or(INITIAL_EVENT_ID), Some(site))
    }

    pub(crate) fn unknown_completion(identity: &Identity, what: &str, id: u64) -> Self {
        Self::of(format!(
            "no matching schedule for {what} id={id}: {} got an outcome for something that its history never asked \
             for; {DAMAGED}",
            instance(identity)
        ))
    }

    pub(crate) fn kind_of_completion(identity: &Identity, id: u64, expected: &str, got: &str) -> Self {
        Self::of(format!(
            "completion kind mismatch for id={id}, expected '{expected}', got '{got}': {} got an outcome of another \
             kind than it asked for; {DAMAGED}",
            instance(identity)
        ))
    }

    pub(crate) fn corrupted(identity: &Identity, what: &str) -> Self {
        Self::of(format!("corrupted history: {what} ({}); {DAMAGED}", instance(identity)))
    }

    /// The code awaits a future that is not durable.
    pub(crate) fn not_durable(identity: &Identity, last: LastCall) -> Self {
        Self::of(format!(
            "waiting for something that is not durable: {} awaits a future that only this process can complete (a \
             sleep, a channel, a task, I/O), which would be lost with it; {}; \
             use schedule_timer for time, an activity for work, an event or queue for messages",
            instance(identity),
            last_call(last)
        ))
    }

    /// The code wakes itself at every poll.
    pub(crate) fn never_rests(identity: &Identity, event_id: u64, last: LastCall) -> Self {
        Self::of(format!(
            "the code never rests: after {} it was woken by itself again and again without deciding or receiving \
             anything; {}; await a durable operation, or a channel that another part of the \
             code sends to",
            place(identity, event_id.max(INITIAL_EVENT_ID)),
            last_call(last)
        ))
        .at(event_id.max(INITIAL_EVENT_ID), site_of(last))
    }
}

/// A decision in words, without its payload. The ids of its event do not show in words.
fn describe(action: &Action) -> String {
    let op = Op::of_action(action);
    op.event(action, 0, 0).map_or_else(|| op.name().to_string(), |event| op.describe(&event))
}

/// Name and place of a durable call, if any was made.
type LastCall = Option<(&'static str, Site)>;

fn last_call(last: LastCall) -> String {
    match last {
        Some((call, site)) => format!("its last durable call was {call} at {site}"),
        None => "it made no durable call yet".to_string(),
    }
}

fn site_of(last: LastCall) -> Option<Site> {
    last.map(|(_, site)| site)
}

fn instance(identity: &Identity) -> String {
    format!("instance '{}' execution {}", identity.instance, identity.execution_id)
}

fn place(identity: &Identity, event_id: u64) -> String {
    format!("event {event_id} of {}", instance(identity))
}
