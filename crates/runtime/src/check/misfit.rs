//! One recorded execution, replayed against the present code.

use super::build::Build;
use outlast_engine::{Past, patch_of};
use outlast_model::{AppErrorKind, ConfigErrorKind, ErrorDetails, Event, EventKind};
use outlast_provider::KvEntry;
use std::collections::{BTreeMap, HashMap};

/// A recorded execution.
pub struct Recorded<'a> {
    /// The instance.
    pub instance: &'a str,
    /// The execution.
    pub execution_id: u64,
    /// All events of the execution.
    pub history: &'a [Event],
    /// The keys at the end of the previous execution.
    pub kv: HashMap<String, KvEntry>,
}

/// The result of a replay.
#[derive(Debug)]
pub struct Checked {
    /// The first event that the code does not repeat.
    pub misfit: Option<Misfit>,
    /// The patches that the code asked for, and whether the execution takes them.
    pub patches: BTreeMap<String, bool>,
    /// The place in the source of each event that was asked for, where it is known.
    pub located: Option<String>,
}

/// An event that the code does not repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// The event; 0 if the code did not run.
    pub event_id: u64,
    /// The behaviour of the code at this event.
    pub cause: Cause,
    /// The place in the source of the decision that the code makes instead, or of its last durable call.
    pub site: Option<String>,
    /// The type of the event that the code asks for instead, if it makes another decision.
    pub decision: Option<&'static str>,
}

impl Misfit {
    /// Whether the code ended before an event of its history.
    fn is_early_end(&self) -> bool {
        matches!(&self.cause, Cause::Mismatch(text) if text.contains("code ended before its history"))
    }
}

/// The behaviour of the code at an event that the code does not repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// No orchestration has this name and version.
    NoCode,
    /// The function panics.
    Panics,
    /// The function does not decode its input, and returns.
    Undecodable,
    /// The code and the history disagree, in the words of the replay error.
    Mismatch(String),
    /// The code makes another decision, or ends otherwise.
    Decides(Box<Event>),
    /// The code makes no decision.
    DecidesNothing,
}

impl Recorded<'_> {
    /// Replays the history, and compares the decisions at its end with those that the code makes now. `locate` is an event whose
    /// place in the source is wanted.
    pub fn check(self, build: &Build, locate: Option<u64>) -> Checked {
        let (prefix, ending) = split(self.history);
        let mut checked = self.check_prefix(build, locate, prefix, ending);
        // Messages of the last turn that arrived after the code had ended are events before its ending.
        let late = match ending {
            [] => 0,
            _ => prefix.iter().rev().take_while(|event| is_arrival(&event.kind)).count(),
        };
        for cut in 1..=late {
            if !checked.misfit.as_ref().is_some_and(Misfit::is_early_end) {
                break;
            }
            checked = self.check_prefix(build, locate, &prefix[..prefix.len() - cut], ending);
        }
        checked
    }

    /// Replays the history without its ending, and then compares the decisions of the code with the ending.
    fn check_prefix(
        &self,
        build: &Build,
        locate: Option<u64>,
        prefix: &[Event],
        ending: &[Event],
    ) -> Checked {
        let mut checked = Checked { misfit: None, patches: BTreeMap::new(), located: None };
        let misfit = |event_id, cause, site| Some(Misfit { event_id, cause, site, decision: None });
        let opening = Past::of_history(prefix).opening;
        let (Some(opening), Some(first)) = (opening, prefix.first()) else {
            checked.misfit = misfit(0, Cause::NoCode, None);
            return checked;
        };
        let stamp = first.duroxide_version.clone();
        let cold = build.cold(self.instance, self.execution_id, opening, stamp, self.kv.clone());
        let mut execution = match cold {
            Ok(execution) if ending.is_empty() => execution,
            Ok(execution) => execution.with_ended_history(),
            Err(cause) => {
                checked.misfit = misfit(0, cause, None);
                return checked;
            }
        };
        let now_ms = self.history.last().map_or(0, |event| event.timestamp_ms);
        let output = build.run(&mut execution, prefix.to_vec(), now_ms);
        let site_of = |event_id: u64| execution.site_of(event_id).map(ToString::to_string);
        checked.patches = execution.patches();
        checked.located = locate.and_then(|event_id| {
            let event = self.history.iter().find(|event| event.event_id == event_id)?;
            site_of(event_id).or_else(|| site_of(event.source_event_id?))
        });
        let decided = output.commit.history_delta;
        if let Some((event, text)) = decided.iter().find_map(|event| Some((event, mismatch(event)?))) {
            let place = output.report.mismatch.unwrap_or_default();
            let cause = match execution.returned_error().is_some_and(|error| is_value_fault(build, error)) {
                true => Cause::Undecodable,
                false => Cause::Mismatch(text.to_string()),
            };
            let event_id = place.event_id.unwrap_or(event.event_id);
            let site = place.site.map(ToString::to_string);
            checked.misfit = Some(Misfit { event_id, cause, site, decision: place.decision });
        } else if let Some((event_id, cause)) = other_ending(&decided, ending) {
            let site = site_of(event_id);
            let decision = match &cause {
                Cause::Decides(event) => Some(event.kind.type_name()),
                _ => None,
            };
            checked.misfit = Some(Misfit { event_id, cause, site, decision });
        }
        checked
    }
}

/// The first difference between the decisions of the code after the history, and the ending of the history.
fn other_ending(decided: &[Event], ending: &[Event]) -> Option<(u64, Cause)> {
    // The code did not cause this ending: poison, a limit, or a cancellation by an operator.
    if ending.iter().any(|event| !is_of_code(&event.kind)) {
        return None;
    }
    // A running instance takes a new patch.
    if ending.is_empty() && decided.first().is_some_and(|first| patch_of(&first.kind).is_some()) {
        return None;
    }
    let kind = |events: &[Event], at: usize| events.get(at).map(|event| event.kind.clone());
    let longest = decided.len().max(ending.len());
    let at = (0..longest).find(|at| kind(decided, *at) != kind(ending, *at))?;
    let event_id = ending.get(at).or(decided.get(at)).map_or(0, |event| event.event_id);
    let cause = match decided.get(at) {
        Some(event) if is_panic(&event.kind) => Cause::Panics,
        Some(event) => Cause::Decides(Box::new(event.clone())),
        None => Cause::DecidesNothing,
    };
    Some((event_id, cause))
}

/// The history without its ending, and the ending: the last event, and the notes of dropped operations before the last event. The
/// engine writes these notes when the code has returned.
fn split(history: &[Event]) -> (&[Event], &[Event]) {
    let Some(last) = history.iter().position(Event::is_terminal) else { return (history, &[]) };
    let notes = history[..last].iter().rev().take_while(|event| is_note(&event.kind)).count();
    (&history[..last - notes], &history[last - notes..=last])
}

/// Whether the event notes that an operation was dropped or cancelled.
fn is_note(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::ActivityCancelRequested { .. }
            | EventKind::SubOrchestrationCancelRequested { .. }
            | EventKind::ExternalSubscribedCancelled { .. }
            | EventKind::QueueSubscriptionCancelled { .. }
    )
}

/// Whether the event is a message that arrived.
fn is_arrival(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::ActivityCompleted { .. }
            | EventKind::ActivityFailed { .. }
            | EventKind::TimerFired { .. }
            | EventKind::ExternalEvent { .. }
            | EventKind::SubOrchestrationCompleted { .. }
            | EventKind::SubOrchestrationFailed { .. }
            | EventKind::QueueEventDelivered { .. }
    )
}

/// Whether the code caused this ending.
fn is_of_code(kind: &EventKind) -> bool {
    match kind {
        EventKind::OrchestrationFailed { details } => matches!(details, ErrorDetails::Application { .. }),
        _ => true,
    }
}

fn is_panic(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::OrchestrationFailed {
            details: ErrorDetails::Application { kind: AppErrorKind::Panicked, .. }
        }
    )
}

/// Whether an error is that of a typed handler for a value that does not decode.
fn is_value_fault(build: &Build, error: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Envelope {
        fault: String,
    }
    let opened = build.codec.open(error);
    let envelope = opened.ok().and_then(|error| serde_json::from_str::<Envelope>(&error).ok());
    envelope.is_some_and(|envelope| envelope.fault == "value")
}

/// The text of a replay error.
fn mismatch(event: &Event) -> Option<&str> {
    match &event.kind {
        EventKind::OrchestrationFailed {
            details:
                ErrorDetails::Configuration {
                    kind: ConfigErrorKind::Nondeterminism, message: Some(message), ..
                },
        } => Some(message),
        _ => None,
    }
}
