//! The state of an instance that a client waits for, in a sentence for people.

use crate::instance_error::InstanceError;
use outlast_provider::{PendingWork, QueuedItem};
use outlast_runtime::lens::{self, Operation, TurnState, Wait, times};
use outlast_runtime::{Client, ClientError, OrchestrationStatus, RuntimeOptions};
use std::time::Duration;
use tokio::time::timeout;

/// The number of queued messages that are read to find a start.
const MOST_QUEUED: usize = 64;
/// The longest diagnosis after a wait that timed out. If it takes longer, a shorter read follows, for at most half of this time.
const MAX_READ: Duration = Duration::from_secs(2);

/// The presence of an instance in its store.
pub(crate) enum Presence {
    Running,
    Ended(&'static str),
    /// No turn is committed. The start is queued, or a store without a view of its queues cannot tell.
    MayStart(Option<PendingWork>),
    Missing,
}

impl Presence {
    /// Looks for a committed turn, then for a queued start, and again for a turn: the first turn can be committed between two looks.
    pub(crate) async fn of(client: &Client, instance: &str) -> Result<Self, ClientError> {
        if let Some(present) = Self::of_turn(client, instance).await? {
            return Ok(present);
        }
        match client.pending_work(instance, MOST_QUEUED).await {
            Ok(Some(pending)) if start_of(&pending).is_some() => Ok(Self::MayStart(Some(pending))),
            Ok(Some(pending)) if pending.message_count <= MOST_QUEUED as u64 => {
                Ok(Self::of_turn(client, instance).await?.unwrap_or(Self::Missing))
            }
            Ok(_) | Err(ClientError::ManagementNotAvailable) => Ok(Self::MayStart(None)),
            Err(error) => Err(error),
        }
    }

    /// `None` without a committed turn.
    async fn of_turn(client: &Client, instance: &str) -> Result<Option<Self>, ClientError> {
        Ok(match client.get_orchestration_status(instance).await? {
            OrchestrationStatus::Running { .. } => Some(Self::Running),
            OrchestrationStatus::Completed { .. } => Some(Self::Ended("Completed")),
            OrchestrationStatus::Failed { .. } => Some(Self::Ended("Failed")),
            OrchestrationStatus::NotFound => None,
        })
    }

    /// An error unless a message can reach the instance.
    pub(crate) fn reachable(self, instance: &str) -> Result<(), InstanceError> {
        let instance = instance.to_string();
        match self {
            Self::Running | Self::MayStart(_) => Ok(()),
            Self::Ended(status) => Err(InstanceError::Ended { instance, status }),
            Self::Missing => Err(InstanceError::NotFound { instance }),
        }
    }
}

fn start_of(pending: &PendingWork) -> Option<&QueuedItem> {
    pending.messages.iter().find(|item| item.kind.as_deref() == Some("StartOrchestration"))
}

/// The state of an instance after a wait that timed out: the sentence of `outlast instance why`, or what the history and the queues say
/// if the diagnosis fails or takes long.
pub(crate) async fn describe(
    client: &Client,
    instance: &str,
    orchestration: &str,
    waited: Duration,
) -> String {
    let known = match timeout(MAX_READ, diagnosis(client, instance)).await {
        Ok(Ok(known)) => known,
        Ok(Err(_)) | Err(_) => match timeout(MAX_READ / 2, known(client, instance, orchestration)).await {
            Ok(Ok(known)) => known,
            Ok(Err(error)) => format!("its state could not be read: {error}"),
            Err(_) => "its state could not be read: the store does not answer".to_string(),
        },
    };
    format!("instance '{instance}' of '{orchestration}' has not ended after {waited:?}: {known}")
}

/// The diagnosis of the instance, which also reads its hold, dead letters and children, and the reports of nodes.
async fn diagnosis(client: &Client, instance: &str) -> Result<String, ClientError> {
    // The option of the runtimes is not known here: the text may have another limit of deliveries than they do.
    let max_attempts = RuntimeOptions::default().max_attempts;
    let found = client.diagnose_instance(instance, max_attempts).await?;
    let mut known = format!("it {}", found.predicate());
    if let Some(advice) = found.early_advice() {
        known.push_str("; if it stays so, ");
        known.push_str(advice);
    }
    Ok(known)
}

/// The state of the instance without hold, dead letters, children and nodes, for a store that cannot read one of them.
async fn known(client: &Client, instance: &str, orchestration: &str) -> Result<String, ClientError> {
    match Presence::of(client, instance).await? {
        Presence::Missing => Ok("no instance was started under this id".to_string()),
        Presence::Ended(status) => Ok(format!("it has ended just now ({status})")),
        Presence::MayStart(None) => {
            Ok("it has no committed turn: was it started, and does a process run it?".into())
        }
        Presence::MayStart(Some(pending)) => Ok(start(&pending, orchestration)),
        Presence::Running => {
            match client.read_execution_history(instance, last_execution(client, instance).await?).await {
                Ok(history) => {
                    let pending = client.pending_work(instance, MOST_QUEUED).await?;
                    Ok(running(&lens::waits(&history, pending.as_ref()), pending.as_ref(), orchestration))
                }
                Err(ClientError::ManagementNotAvailable) => Ok("it is running".to_string()),
                Err(error) => Err(error),
            }
        }
    }
}

async fn last_execution(client: &Client, instance: &str) -> Result<u64, ClientError> {
    Ok(client.list_executions(instance).await?.last().copied().unwrap_or(1))
}

fn start(pending: &PendingWork, orchestration: &str) -> String {
    let Some(start) = start_of(pending) else { return "its start is gone from the queue".to_string() };
    let left = start.visible_at.saturating_sub(pending.now_ms);
    match (start.locked_until, start.attempt_count, left) {
        (Some(_), ..) => "its first turn runs".to_string(),
        (None, 0, 1..) => format!("its start is delayed for another {}", span(left)),
        (None, deliveries, _) => format!(
            "its start was delivered {}, and no process has run it: does a running process register '{orchestration}'?",
            times(deliveries)
        ),
    }
}

/// The first wait is enough for a sentence; the tool `outlast instance show` lists all.
fn running(waits: &[Wait], pending: Option<&PendingWork>, orchestration: &str) -> String {
    if let Some(pending) = pending
        && let TurnState::Due { messages, since_ms, deliveries } = lens::turn_state(pending)
    {
        return format!(
            "{} for its next turn, {} so far, delivered {}: does a running process register '{orchestration}' in the version \
             of this instance?",
            if messages == 1 { "1 message waits".to_string() } else { format!("{messages} messages wait") },
            span(pending.now_ms.saturating_sub(since_ms)),
            times(deliveries)
        );
    }
    if let Some((deliveries, left)) = pending.and_then(given_back) {
        return format!(
            "its next turn was delivered {} and given back, and is delivered again in {}: does a running process register \
             '{orchestration}' in the version of this instance?",
            times(deliveries),
            span(left)
        );
    }
    let Some(wait) = waits.first() else { return "its turn runs, or it waits for nothing".to_string() };
    let operation = match &wait.open.operation {
        Operation::Activity { name, .. } => format!("activity '{name}'"),
        Operation::Timer { .. } => "a timer".to_string(),
        Operation::Event { name } => format!("event '{name}'"),
        Operation::Queue { name } => format!("a message of queue '{name}'"),
        Operation::Child { name, instance } => format!("child '{instance}' of '{name}'"),
    };
    let since = pending.map(|pending| pending.now_ms.saturating_sub(wait.open.since_ms));
    let since = since.map_or(String::new(), |since| format!(", {} so far", span(since)));
    let others = match waits.len() {
        1 => String::new(),
        2 => ", and for another operation".to_string(),
        more => format!(", and for {} other operations", more - 1),
    };
    format!("it waits for {operation}{since}{others}")
}

/// The deliveries of a message that a process gave back, and the time until the next one.
fn given_back(pending: &PendingWork) -> Option<(u32, u64)> {
    let is_given_back = |item: &&QueuedItem| item.attempt_count > 0 && item.locked_until.is_none();
    let later = |item: &QueuedItem| (item.attempt_count, item.visible_at.saturating_sub(pending.now_ms));
    pending.messages.iter().filter(is_given_back).map(later).filter(|(_, left)| *left > 0).max()
}

fn span(ms: u64) -> String {
    format!("{:?}", Duration::from_millis(ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_was_given_back_counts_before_the_waits() {
        let given_back = QueuedItem { attempt_count: 7, visible_at: 9_000, ..QueuedItem::default() };
        let timer = QueuedItem { visible_at: 90_000, ..QueuedItem::default() };
        let mut pending = PendingWork { now_ms: 4_000, messages: vec![timer], ..PendingWork::default() };
        assert_eq!(running(&[], Some(&pending), "order"), "its turn runs, or it waits for nothing");
        pending.messages.push(given_back);
        let text = running(&[], Some(&pending), "order");
        assert!(text.contains("delivered 7 times and given back, and is delivered again in 5s"), "{text}");
        pending.messages[1].locked_until = Some(8_000);
        pending.turn_locked_until = Some(8_000);
        assert_eq!(running(&[], Some(&pending), "order"), "its turn runs, or it waits for nothing");
    }
}
