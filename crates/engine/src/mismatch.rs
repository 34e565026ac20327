//! What is said when code and history disagree: what was stored, what the code did, where, and what to do.

use crate::context::Identity;
use crate::decide::Emitted;
use crate::op;
use crate::state::Site;
use outlast_model::{ConfigErrorKind, ErrorDetails, Event, EventKind, INITIAL_EVENT_ID};

/// What a person can do about code that no longer fits its history.
const ADVICE: &str = "run the code that wrote this history, or register the changed code as a new version";

/// What a person can do about a history that no code can have written.
const DAMAGED: &str = "the store is damaged or was changed by hand: restore history and queues from the same backup, or \
                       start the instance anew under another id";

/// A disagreement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mismatch(String);

impl Mismatch {
    pub(crate) fn details(self) -> ErrorDetails {
        ErrorDetails::Configuration {
            kind: ConfigErrorKind::Nondeterminism,
            resource: String::new(),
            message: Some(self.0),
        }
    }

    /// History goes on where the code decided nothing.
    pub(crate) fn nothing_decided(who: &Identity, recorded: &Event, last: LastCall) -> Self {
        let core = match recorded.kind {
            EventKind::OrchestrationChained { .. } => "history OrchestrationChained but no emitted action",
            _ => "history schedule but no emitted action",
        };
        let what = op::describe_event(&recorded.kind);
        Self(format!(
            "{core}: {} is {what}, and the code does not ask for it; {}; {ADVICE}",
            place(who, recorded.event_id),
            last_call(last)
        ))
    }

    /// The code decided something else.
    pub(crate) fn another_decision(who: &Identity, recorded: &Event, now: &Emitted) -> Self {
        let core = match recorded.kind {
            EventKind::CustomStatusUpdated { .. } => "custom status mismatch",
            EventKind::KeyValueSet { .. } => "kv set mismatch",
            EventKind::KeyValueCleared { .. } => "kv clear mismatch",
            EventKind::KeyValuesCleared => "kv clear_all mismatch",
            _ => "schedule mismatch",
        };
        let (was, is) = (op::describe_event(&recorded.kind), op::describe(&now.action));
        let is = if was == is { format!("{is} with another payload") } else { is };
        Self(format!(
            "{core}: {} is {was}, and the code now asks for {is} at {}; {ADVICE}",
            place(who, recorded.event_id),
            now.site
        ))
    }

    /// The code ended where history goes on.
    pub(crate) fn ended_early(who: &Identity, event_id: u64, ended: &str, last: LastCall) -> Self {
        Self(format!(
            "code ended before its history: replaying {}, the code {ended}, where it went on before; {}; \
             {ADVICE}",
            place(who, event_id.max(INITIAL_EVENT_ID)),
            last_call(last)
        ))
    }

    pub(crate) fn not_open(
        who: &Identity,
        event_id: u64,
        source: u64,
        name: &str,
        site: Option<Site>,
    ) -> Self {
        let why = match site {
            Some(site) => format!("which was asked for at {site} and has its outcome already"),
            None => "which is no scheduled operation".to_string(),
        };
        let place = place(who, event_id);
        Self(format!(
            "completion without open schedule: {place} is {name} for event {source}, {why}; {DAMAGED}"
        ))
    }

    pub(crate) fn not_an_activity(who: &Identity, event_id: u64, source: u64) -> Self {
        Self(format!(
            "completion kind mismatch: expected activity: {} completes event {source}, which is none; {DAMAGED}",
            place(who, event_id)
        ))
    }

    /// `site` is where the first of the futures was asked for.
    pub(crate) fn not_dropped(who: &Identity, what: &str, recorded: &[u64], site: Site) -> Self {
        Self(format!(
            "cancellation mismatch ({what}): the history of {} says that the code dropped the futures of events \
             {recorded:?}, and it did not drop them (the first is asked for at {site}); {ADVICE}",
            instance(who)
        ))
    }

    pub(crate) fn unknown_completion(who: &Identity, what: &str, id: u64) -> Self {
        Self(format!(
            "no matching schedule for {what} id={id}: {} got an outcome for something that its history never asked \
             for; {DAMAGED}",
            instance(who)
        ))
    }

    pub(crate) fn kind_of_completion(who: &Identity, id: u64, expected: &str, got: &str) -> Self {
        Self(format!(
            "completion kind mismatch for id={id}, expected '{expected}', got '{got}': {} got an outcome of another \
             kind than it asked for; {DAMAGED}",
            instance(who)
        ))
    }

    pub(crate) fn corrupted(who: &Identity, what: &str) -> Self {
        Self(format!("corrupted history: {what} ({}); {DAMAGED}", instance(who)))
    }

    /// The code waits for something that nobody will record.
    pub(crate) fn not_durable(who: &Identity, last: LastCall) -> Self {
        Self(format!(
            "waiting for something that is not durable: {} awaits a future that only this process can complete (a \
             sleep, a channel, a task, I/O), which would be lost with it; {}; \
             use schedule_timer for time, an activity for work, an event or queue for messages",
            instance(who),
            last_call(last)
        ))
    }

    /// The code waits by waking itself up.
    pub(crate) fn never_rests(who: &Identity, event_id: u64, last: LastCall) -> Self {
        Self(format!(
            "the code never rests: after {} it was woken by itself again and again without deciding or receiving \
             anything; {}; await a durable operation, or a channel that another part of the \
             code sends to",
            place(who, event_id.max(INITIAL_EVENT_ID)),
            last_call(last)
        ))
    }
}

/// Name and place of a durable call, if any was made.
type LastCall = Option<(&'static str, Site)>;

fn last_call(last: LastCall) -> String {
    match last {
        Some((call, site)) => format!("its last durable call was {call} at {site}"),
        None => "it made no durable call yet".to_string(),
    }
}

fn instance(who: &Identity) -> String {
    format!("instance '{}' execution {}", who.instance, who.execution_id)
}

fn place(who: &Identity, event_id: u64) -> String {
    format!("event {event_id} of {}", instance(who))
}
