//! Reads histories and queue rows that are written as text, one line each. Every payload is `s3cret`, unless a line gives one.
//!
//! An event is `ID @TIME WORD ARGUMENTS`:
//!
//! ```text
//! 1 @0 started Order 1.4.0 [carries=q] [stamp=+buffered] [status=text]
//! 2 @10 activity Charge [input=x] [tag=gpu] [session=s]
//! 3 @20 ok 2 | failed 2 | cancelled 2 | fired 2
//! 4 @20 timer 1020
//! 5 @20 wait approve | event approve | queue orders | message orders
//! 6 @20 child Deliver sub::6 | detached Audit audit-1
//! 7 @30 status text | set key value | clear key | clear-all
//! 8 @40 completed | continued | ended FAILURE
//! ```
//!
//! A queue row is `message KIND [NAME] [#ID] ...` or `activity NAME #ID ...`, with `visible=MS`, `tries=N`, `locked=MS`; `now MS` is the
//! present, `lease MS` the end of the turn's lease, `dead message|activity TEXT...` a dead letter.

use outlast_lens::Evidence;
use outlast_model::{
    AppErrorKind, CONTRACT_VERSION, ConfigErrorKind, DeadLetter, DeadLetterQueue, ErrorDetails, Event,
    EventKind, PendingWork, PoisonMessageType, QueuedItem, WorkItem, json,
};
use std::collections::HashMap;

pub(crate) const SECRET: &str = "s3cret";
pub(crate) const NOW: u64 = 100_000;

/// The words of a line, and its `name=value` pairs.
struct Line<'a> {
    words: Vec<&'a str>,
    pairs: HashMap<&'a str, &'a str>,
    text: &'a str,
}

impl<'a> Line<'a> {
    fn of(text: &'a str) -> Self {
        let (pairs, words): (Vec<&str>, Vec<&str>) =
            text.split_whitespace().partition(|word| word.contains('='));
        let pairs = pairs.into_iter().map(|pair| pair.split_once('=').unwrap()).collect();
        Self { words, pairs, text }
    }

    fn word(&self, index: usize) -> String {
        self.words.get(index).unwrap_or_else(|| panic!("word {index} of {}", self.text)).to_string()
    }

    fn number(&self, index: usize) -> u64 {
        let word = self.word(index);
        word.trim_start_matches(['@', '#']).parse().unwrap_or_else(|_| panic!("{word} of {}", self.text))
    }

    fn pair(&self, name: &str) -> Option<String> {
        self.pairs.get(name).map(ToString::to_string)
    }

    fn ms(&self, name: &str) -> Option<u64> {
        self.pairs.get(name).map(|value| value.parse().unwrap())
    }
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

/// The events of a text.
pub(crate) fn history(text: &str) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for line in lines(text) {
        let line = Line::of(line);
        let source =
            matches!(line.word(2).as_str(), "ok" | "failed" | "cancelled" | "fired").then(|| line.number(3));
        let of = source.and_then(|source| events.iter().find(|event| event.event_id == source));
        let kind = kind(&line, of.map(|event| &event.kind));
        let mut event = Event::at(line.number(1), line.number(0), "i", 1, source, kind);
        if let Some(stamp) = line.pair("stamp") {
            event.duroxide_version = format!("{CONTRACT_VERSION}{stamp}");
        }
        events.push(event);
    }
    events
}

fn kind(line: &Line<'_>, of: Option<&EventKind>) -> EventKind {
    let secret = || line.pair("data").unwrap_or_else(|| SECRET.to_string());
    let name = || line.word(3);
    let input = line.pair("input").unwrap_or_else(secret);
    match line.word(2).as_str() {
        "started" => EventKind::OrchestrationStarted {
            name: name(),
            version: line.word(4),
            input,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: line
                .pair("carries")
                .map(|names| names.split(',').map(|name| (name.to_string(), secret())).collect()),
            initial_custom_status: line.pair("status"),
        },
        "activity" => EventKind::ActivityScheduled {
            name: name(),
            input,
            session_id: line.pair("session"),
            tag: line.pair("tag"),
        },
        "timer" => EventKind::TimerCreated { fire_at_ms: line.number(3) },
        "wait" => EventKind::ExternalSubscribed { name: name() },
        "event" => EventKind::ExternalEvent { name: name(), data: secret() },
        "queue" => EventKind::QueueSubscribed { name: name() },
        "message" => EventKind::QueueEventDelivered { name: name(), data: secret() },
        "child" => EventKind::SubOrchestrationScheduled { name: name(), instance: line.word(4), input },
        "detached" => EventKind::OrchestrationChained { name: name(), instance: line.word(4), input },
        "status" => EventKind::CustomStatusUpdated { status: line.words.get(3).map(ToString::to_string) },
        "set" => EventKind::KeyValueSet { key: name(), value: line.word(4), last_updated_at_ms: 7 },
        "clear" => EventKind::KeyValueCleared { key: name() },
        "clear-all" => EventKind::KeyValuesCleared,
        "completed" => EventKind::OrchestrationCompleted { output: secret() },
        "continued" => EventKind::OrchestrationContinuedAsNew { input: secret() },
        "ended" => EventKind::OrchestrationFailed { details: failure(&name()) },
        "fired" => EventKind::TimerFired { fire_at_ms: line.number(1) },
        outcome => outcome_kind(outcome, of.unwrap_or_else(|| panic!("{}", line.text))),
    }
}

fn outcome_kind(outcome: &str, of: &EventKind) -> EventKind {
    let (result, reason) = (SECRET.to_string(), SECRET.to_string());
    match (outcome, of) {
        ("ok", EventKind::ActivityScheduled { .. }) => EventKind::ActivityCompleted { result },
        ("ok", EventKind::SubOrchestrationScheduled { .. }) => {
            EventKind::SubOrchestrationCompleted { result }
        }
        ("failed", EventKind::ActivityScheduled { .. }) => {
            EventKind::ActivityFailed { details: failure("activity") }
        }
        ("failed", EventKind::SubOrchestrationScheduled { .. }) => {
            EventKind::SubOrchestrationFailed { details: failure("code") }
        }
        ("cancelled", EventKind::ActivityScheduled { .. }) => EventKind::ActivityCancelRequested { reason },
        ("cancelled", EventKind::SubOrchestrationScheduled { .. }) => {
            EventKind::SubOrchestrationCancelRequested { reason }
        }
        ("cancelled", EventKind::ExternalSubscribed { .. }) => {
            EventKind::ExternalSubscribedCancelled { reason }
        }
        ("cancelled", EventKind::QueueSubscribed { .. }) => EventKind::QueueSubscriptionCancelled { reason },
        (outcome, of) => panic!("{outcome} of {of:?}"),
    }
}

fn failure(word: &str) -> ErrorDetails {
    let message = SECRET.to_string();
    let poison = |message_type, message| ErrorDetails::Poison {
        attempt_count: 11,
        max_attempts: 10,
        message_type,
        message,
    };
    let (instance, execution_id) = ("i".to_string(), 1);
    let kind = match word {
        "activity" => AppErrorKind::ActivityFailed,
        "code" => AppErrorKind::OrchestrationFailed,
        "limit" => return ErrorDetails::refusal(SECRET, "i"),
        "panic" => AppErrorKind::Panicked,
        "cancel" => AppErrorKind::Cancelled { reason: SECRET.to_string() },
        "nondeterminism" => {
            let (kind, resource) = (ConfigErrorKind::Nondeterminism, SECRET.to_string());
            return ErrorDetails::Configuration { kind, resource, message: Some(message) };
        }
        "store" => {
            let operation = "load".to_string();
            return ErrorDetails::Infrastructure { operation, message, retryable: false };
        }
        "poisoned-turn" => {
            return poison(PoisonMessageType::Orchestration { instance, execution_id }, message);
        }
        "unregistered" => {
            let text = ErrorDetails::message_with_cause("orchestration 'O' is not registered", SECRET);
            return poison(PoisonMessageType::Orchestration { instance, execution_id }, text);
        }
        "poisoned-activity" => {
            let (activity_name, activity_id) = ("Charge".to_string(), 2);
            let item = PoisonMessageType::Activity { instance, execution_id, activity_name, activity_id };
            return poison(item, message);
        }
        "undecodable" => {
            let error = SECRET.to_string();
            return poison(
                PoisonMessageType::FailedDeserialization { instance, execution_id, error },
                message,
            );
        }
        other => panic!("failure {other}"),
    };
    ErrorDetails::Application { kind, message, retryable: false }
}

/// Queue rows and dead letters.
#[derive(Default)]
pub(crate) struct Queues {
    pub(crate) pending: PendingWork,
    pub(crate) dead_letters: Vec<DeadLetter>,
}

/// The queue rows of a text.
pub(crate) fn queues(text: &str) -> Queues {
    let mut found = Queues::default();
    found.pending.now_ms = NOW;
    for line in lines(text) {
        let line = Line::of(line);
        match line.word(0).as_str() {
            "now" => found.pending.now_ms = line.number(1),
            "lease" => found.pending.turn_locked_until = Some(line.number(1)),
            "message" => found.pending.messages.push(item(&line, line.word(1), 2)),
            "activity" => found.pending.activities.push(item(&line, "ActivityExecute".to_string(), 1)),
            "dead" => found.dead_letters.push(dead_letter(&line)),
            other => panic!("{other}"),
        }
    }
    found.pending.message_count = found.pending.messages.len() as u64;
    found.pending.activity_count = found.pending.activities.len() as u64;
    found
}

fn item(line: &Line<'_>, kind: String, from: usize) -> QueuedItem {
    let rest = &line.words[from..];
    let id = rest.iter().find_map(|word| word.strip_prefix('#')).map(|id| id.parse().unwrap());
    QueuedItem {
        kind: Some(kind),
        name: rest.iter().find(|word| !word.starts_with('#')).map(ToString::to_string),
        execution_id: id.map(|_| line.ms("execution").unwrap_or(1)),
        id,
        visible_at: line.ms("visible").unwrap_or(NOW - 100),
        locked_until: line.ms("locked"),
        attempt_count: line.ms("tries").map_or(0, |tries| u32::try_from(tries).unwrap()),
        failures: line.ms("fails").map_or(0, |fails| u32::try_from(fails).unwrap()),
        ..QueuedItem::default()
    }
}

fn dead_letter(line: &Line<'_>) -> DeadLetter {
    let is_activity = line.word(1) == "activity";
    let work_item = match (is_activity, line.words.get(2).copied()) {
        (true, Some(id)) => json::encode_work_item(&WorkItem::ActivityExecute {
            instance: "i".to_string(),
            execution_id: 1,
            id: id.trim_start_matches('#').parse().unwrap(),
            name: "Charge".to_string(),
            input: SECRET.to_string(),
            session_id: None,
            tag: None,
        })
        .unwrap(),
        (false, Some(name)) => json::encode_work_item(&WorkItem::ExternalRaised {
            instance: "i".to_string(),
            name: name.to_string(),
            data: SECRET.to_string(),
        })
        .unwrap(),
        (_, None) => format!("{{\"{SECRET}"),
    };
    let queue = if is_activity { DeadLetterQueue::Worker } else { DeadLetterQueue::Orchestrator };
    DeadLetter {
        queue,
        instance_id: Some("i".to_string()),
        work_item,
        reason: SECRET.to_string(),
        attempt_count: 1,
        dead_at: 90_000,
    }
}

impl Queues {
    pub(crate) fn evidence<'a>(&'a self, history: &'a [Event]) -> Evidence<'a> {
        let mut evidence = Evidence::new("i", history, NOW);
        evidence.pending = Some(&self.pending);
        evidence.dead_letters = &self.dead_letters;
        evidence.max_attempts = Some(10);
        evidence
    }
}
