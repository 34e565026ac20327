//! Shows what a running instance waits for: its turn, open operations and queued messages.

use crate::failure::Failure;
use crate::queued::Queued;
use outlast::client::Client;
use outlast::lens::{Operation, Progress, TurnState, Wait, moment, span, times, turn_state, waits};
use outlast::providers::{Clock, PendingWork, SystemClock};
use serde::Serialize;

/// The most messages and activities that are read; an instance may have thousands.
const MOST_QUEUED: usize = 200;
/// The number of reads if turns are committed in between.
const MAX_READS: usize = 20;
/// After a turn has been due for this time, the output asks whether a runtime has the orchestration.
const SUSPICIOUS_MS: u64 = 5_000;

#[derive(Serialize)]
pub(super) struct Waiting {
    /// The store's time.
    now_ms: u64,
    /// Null if the store does not report it.
    turn: Option<Turn>,
    waits: Vec<Open>,
    messages: Vec<Queued>,
    messages_left_out: u64,
}

#[derive(Serialize)]
struct Turn {
    /// `idle`, `due` or `leased`.
    state: &'static str,
    messages: usize,
    since_ms: Option<u64>,
    lease_until_ms: Option<u64>,
    deliveries: u32,
}

#[derive(Serialize)]
struct Open {
    /// `activity`, `timer`, `event`, `queue` or `child`.
    kind: &'static str,
    name: Option<String>,
    event_id: u64,
    since_ms: u64,
    /// `queued`, `leased`, `sleeping`, `answered`, `outside`, `lost` or `unknown`.
    state: &'static str,
    deliveries: Option<u32>,
    /// Failures that the handler of an activity has reported.
    failures: u32,
    due_ms: Option<u64>,
    lease_until_ms: Option<u64>,
    tag: Option<String>,
    session: Option<String>,
    child: Option<Child>,
}

#[derive(Serialize)]
struct Child {
    instance: String,
    /// Null before its first turn.
    status: Option<String>,
}

/// Reads the history and the queues of a running instance. A turn between the two reads can make an operation look lost: if the history
/// has grown, both are read again.
pub(super) async fn read(client: &Client, instance: &str, execution: u64) -> Result<Waiting, Failure> {
    let mut reads = 0;
    loop {
        reads += 1;
        let history = client.read_execution_history(instance, execution).await?;
        let pending = client.pending_work(instance, MOST_QUEUED).await?;
        let found = waits(&history, pending.as_ref());
        let is_certain = reads == MAX_READS || !found.iter().any(|wait| wait.progress == Progress::Lost);
        let last = history.last().map_or(0, |last| last.event_id);
        if is_certain || client.history_page(instance, execution, last, 1).await?.is_empty() {
            return described(client, found, pending).await;
        }
    }
}

async fn described(
    client: &Client,
    found: Vec<Wait>,
    pending: Option<PendingWork>,
) -> Result<Waiting, Failure> {
    let mut open = Vec::new();
    for wait in found {
        let child = match &wait.open.operation {
            Operation::Child { instance, .. } => {
                let status = client.get_orchestration_status(instance).await?;
                let known = status != outlast::OrchestrationStatus::NotFound;
                let status = match known {
                    true => Some(client.get_instance_info(instance).await?.status),
                    false => None,
                };
                Some(Child { instance: instance.clone(), status })
            }
            _ => None,
        };
        let items = pending.as_ref().map_or(&[][..], |pending| &pending.activities);
        let item = items.iter().find(|item| item.id == Some(wait.open.event_id));
        let failures = item.map_or(0, |item| item.failures);
        open.push(Open::of(wait, child, failures));
    }
    let turn = pending.as_ref().map(|pending| Turn::of(&turn_state(pending)));
    let pending =
        pending.unwrap_or_else(|| PendingWork { now_ms: SystemClock.now_ms(), ..PendingWork::default() });
    let messages_left_out = pending.message_count.saturating_sub(pending.messages.len() as u64);
    let messages = pending.messages.into_iter().map(Queued::from).collect();
    Ok(Waiting { now_ms: pending.now_ms, turn, waits: open, messages, messages_left_out })
}

impl Turn {
    fn of(state: &TurnState) -> Self {
        let idle = Self { state: "idle", messages: 0, since_ms: None, lease_until_ms: None, deliveries: 0 };
        match *state {
            TurnState::Idle => idle,
            TurnState::Leased { until_ms, deliveries } => {
                Self { state: "leased", lease_until_ms: Some(until_ms), deliveries, ..idle }
            }
            TurnState::Due { messages, since_ms, deliveries } => {
                Self { state: "due", messages, since_ms: Some(since_ms), deliveries, ..idle }
            }
        }
    }

    /// A line about the state, or `None`. No process runs a turn of a held instance.
    fn text(&self, now_ms: u64, code: &str, is_held: bool) -> Option<String> {
        let tried = match self.deliveries {
            0 => String::new(),
            tries => format!(", delivered {} without a commit", times(tries)),
        };
        match (self.since_ms, self.lease_until_ms) {
            (_, Some(until)) => Some(format!(
                "runs (delivery {}), its lease ends in {}",
                self.deliveries,
                span(until.saturating_sub(now_ms))
            )),
            (Some(since), None) => {
                let waited = now_ms.saturating_sub(since);
                let hint = match waited >= SUSPICIOUS_MS {
                    true => format!(": is a process running that has {code}?"),
                    false => String::new(),
                };
                let messages = if self.messages == 1 { "message waits" } else { "messages wait" };
                if is_held {
                    return Some(format!("is held: {} {messages} for the release", self.messages));
                }
                Some(format!(
                    "is due: {} {messages} for it, {} so far{tried}{hint}",
                    self.messages,
                    span(waited)
                ))
            }
            (None, None) => None,
        }
    }
}

impl Open {
    fn of(wait: Wait, child: Option<Child>, failures: u32) -> Self {
        let (kind, name, tag, session) = match wait.open.operation {
            Operation::Activity { name, tag, session_id } => ("activity", Some(name), tag, session_id),
            Operation::Timer { .. } => ("timer", None, None, None),
            Operation::Event { name } => ("event", Some(name), None, None),
            Operation::Queue { name } => ("queue", Some(name), None, None),
            Operation::Child { name, .. } => ("child", Some(name), None, None),
        };
        let (state, deliveries, due_ms, lease_until_ms) = match wait.progress {
            Progress::Queued { visible_at_ms, deliveries } => {
                ("queued", Some(deliveries), Some(visible_at_ms), None)
            }
            Progress::Leased { until_ms, deliveries } => ("leased", Some(deliveries), None, Some(until_ms)),
            Progress::Sleeping { until_ms } => ("sleeping", None, Some(until_ms), None),
            Progress::Answered => ("answered", None, None, None),
            Progress::Outside => ("outside", None, None, None),
            Progress::Lost => ("lost", None, None, None),
            Progress::Unknown => ("unknown", None, None, None),
        };
        let (event_id, since_ms) = (wait.open.event_id, wait.open.since_ms);
        Self {
            kind,
            name,
            event_id,
            since_ms,
            state,
            deliveries,
            failures,
            due_ms,
            lease_until_ms,
            tag,
            session,
            child,
        }
    }

    fn text(&self, now_ms: u64) -> String {
        let name = self.name.as_deref().unwrap_or_default();
        let what = match self.kind {
            "activity" => format!("activity {name}"),
            "event" => format!("event '{name}'"),
            "queue" => format!("a message of queue '{name}'"),
            "child" => {
                let id = self.child.as_ref().map_or("", |child| child.instance.as_str());
                format!("child {id} ({name})")
            }
            other => other.to_string(),
        };
        let labels: String = [("tag", &self.tag), ("session", &self.session)]
            .iter()
            .filter_map(|(label, value)| value.as_ref().map(|value| format!(" {label} {value}")))
            .collect();
        let since = span(now_ms.saturating_sub(self.since_ms));
        format!("{what}{labels}: {} (event {}, for {since})", self.state_text(now_ms), self.event_id)
    }

    fn state_text(&self, now_ms: u64) -> String {
        let deliveries = self.deliveries.unwrap_or(0);
        let left = |until: Option<u64>| span(until.unwrap_or(0).saturating_sub(now_ms));
        let failed = format!("its handler failed {}", times(self.failures));
        match (self.state, &self.child) {
            ("queued", _) if self.failures > 0 && self.due_ms.is_some_and(|due| due > now_ms) => {
                format!("{failed}, can be fetched again in {}", left(self.due_ms))
            }
            ("queued", _) if self.failures > 0 => format!("{failed}, queued again"),
            ("queued", _) if self.due_ms.is_some_and(|due| due > now_ms) => {
                format!("delivered {}, can be fetched again in {}", times(deliveries), left(self.due_ms))
            }
            ("queued", _) if deliveries == 0 => "queued, no worker has taken it".to_string(),
            ("queued", _) => format!("queued again, delivered {}", times(deliveries)),
            ("leased", _) => {
                format!(
                    "a worker has it (delivery {deliveries}), its lease ends in {}",
                    left(self.lease_until_ms)
                )
            }
            ("sleeping", _) => format!("due in {}, {}", left(self.due_ms), moment(self.due_ms.unwrap_or(0))),
            ("answered", _) => "its outcome is there and waits for the next turn".to_string(),
            ("outside", Some(Child { status: Some(status), .. })) => status.clone(),
            ("outside", Some(_)) => "its first turn is not committed yet".to_string(),
            ("outside", None) => "not sent yet".to_string(),
            ("lost", _) => "nothing in the queues can end it: the store is damaged".to_string(),
            _ => "the store does not say how far it is".to_string(),
        }
    }
}

/// A message in one line.
fn message_text(message: &Queued, now_ms: u64) -> String {
    let kind = message.kind.as_deref().unwrap_or("a text that does not decode");
    let name = message.name.as_ref().map_or(String::new(), |name| format!(" {name}"));
    let of = message.of_event.map_or(String::new(), |of| format!(" of event {of}"));
    let when = match (message.lease_until_ms, message.visible_ms.checked_sub(now_ms)) {
        (Some(_), _) => "in the turn that runs".to_string(),
        (None, Some(left @ 1..)) => format!("delivered in {}", span(left)),
        (None, _) => format!("has waited {}", span(now_ms.saturating_sub(message.visible_ms))),
    };
    let tried = match message.deliveries {
        0 => String::new(),
        tries => format!(", delivered {}", times(tries)),
    };
    format!("{kind}{name}{of}, {} bytes, {when}{tried}", message.bytes)
}

impl Waiting {
    /// Lines with their titles. `code` names the orchestration and its version.
    pub(super) fn lines(&self, code: &str, is_held: bool) -> Vec<(&'static str, String)> {
        let mut lines: Vec<(&'static str, String)> = Vec::new();
        let turn = self.turn.as_ref().and_then(|turn| turn.text(self.now_ms, code, is_held));
        lines.extend(turn.clone().map(|turn| ("turn", turn)));
        let mut title = "waits for";
        for open in &self.waits {
            lines.push((title, open.text(self.now_ms)));
            title = "";
        }
        if self.waits.is_empty() && turn.is_none() && self.turn.is_some() {
            lines.push((
                "waits for",
                "nothing: no operation is open, and no message can be fetched".to_string(),
            ));
        }
        let mut title = "messages";
        for message in &self.messages {
            lines.push((title, message_text(message, self.now_ms)));
            title = "";
        }
        if self.messages_left_out > 0 {
            lines.push(("", format!("and {} more", self.messages_left_out)));
        }
        lines
    }
}
