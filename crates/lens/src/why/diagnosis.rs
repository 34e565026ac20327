//! The result of a diagnosis.

use super::words::quoted;
use serde::Serialize;

/// The result of [`diagnose`](super::diagnose).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    instance: String,
    finding: Finding,
    of_child: Option<Box<Diagnosis>>,
}

/// The rule that applied, and its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) rule: Rule,
    /// The sentence without its subject: the instance.
    pub(super) says: String,
    /// The command that helps.
    pub(super) remedy: Option<String>,
    /// Advice that the sentence leaves out.
    pub(super) early_advice: Option<String>,
    pub(super) child: Option<String>,
}

impl Finding {
    pub(super) fn new(rule: Rule, says: impl Into<String>) -> Self {
        Self { rule, says: says.into(), remedy: None, early_advice: None, child: None }
    }
}

/// The state of an instance. The text form is that of the variant in `snake_case`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Rule {
    /// No data of the instance is stored.
    NotFound,
    /// Messages wait for an instance that does not exist.
    Orphans,
    /// The instance does not exist, and its messages are dead letters.
    StartSetAside,
    /// The store has a row of the instance and none of its events.
    NoHistory,
    /// The history of a running instance does not decode.
    Undecodable,
    /// The instance completed.
    Completed,
    /// The instance failed.
    Failed,
    /// The instance was cancelled.
    Cancelled,
    /// The execution continued as new, and no message starts its successor.
    NoSuccessor,
    /// The item that the instance waits for is a dead letter.
    SetAside,
    /// An operator paused the instance, or a runtime parked it.
    Held,
    /// The start is delayed.
    StartDelayed,
    /// A node holds the lease of the turn.
    TurnLeased,
    /// A node gave the turn back with a delay.
    TurnGivenBack,
    /// Nodes whose code is older than a patch of the history gave the turn back.
    TurnNeedsPatch,
    /// The turn is due, and was delivered without a commit.
    TurnNotCommitted,
    /// The turn is due, and was not fetched.
    TurnDue,
    /// No queued item can end an open operation.
    OperationLost,
    /// The activity is queued, and was not fetched.
    ActivityQueued,
    /// A node holds the lease of the activity.
    ActivityLeased,
    /// A node gave the activity back with a delay.
    ActivityGivenBack,
    /// The activity is queued, and was delivered without an outcome.
    ActivityNotCommitted,
    /// The store does not report the progress of the activity.
    ActivityUnknown,
    /// The instance waits for a child.
    Child,
    /// The instance waits for an event that was not sent.
    EventNotSent,
    /// The event was sent before the code waited for it, and was dropped.
    EventDropped,
    /// The instance waits for a queue message that was not sent.
    MessageNotSent,
    /// The instance waits for the time of the next try of an activity.
    RetrySleeps,
    /// The instance waits for a timer.
    Sleeps,
    /// The outcome of the operation is queued, and delivered later.
    OutcomeDelayed,
    /// No operation is open, and no message is queued.
    WaitsForNothing,
    /// No operation is open, and the store does not report the queues.
    Unknown,
}

impl Rule {
    /// Whether the instance exists, or was started and waits for its first turn.
    pub fn is_of_an_instance(self) -> bool {
        !matches!(self, Self::NotFound | Self::Orphans | Self::StartSetAside)
    }

    /// Whether a commit between the reads of history and queues can make an instance look so: read again before you trust it.
    pub fn may_come_from_two_times(self) -> bool {
        matches!(
            self,
            Self::NotFound
                | Self::NoHistory
                | Self::NoSuccessor
                | Self::SetAside
                | Self::OperationLost
                | Self::OutcomeDelayed
                | Self::WaitsForNothing
        )
    }
}

impl Diagnosis {
    pub(super) fn of(instance: &str, finding: Finding) -> Self {
        Self { instance: instance.to_string(), finding, of_child: None }
    }

    /// The instance.
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// The state of the instance.
    pub fn rule(&self) -> Rule {
        self.finding.rule
    }

    /// The child that the instance waits for, whose diagnosis completes this one.
    pub fn child(&self) -> Option<&str> {
        self.finding.child.as_deref()
    }

    /// The diagnosis of the child.
    pub fn of_child(&self) -> Option<&Diagnosis> {
        self.of_child.as_deref()
    }

    /// Adds the diagnosis of the child.
    #[must_use]
    pub fn with_child(self, child: Diagnosis) -> Self {
        Self { of_child: Some(Box::new(child)), ..self }
    }

    /// The command that lets the instance, or the child at the end of the chain, go on; `None` if there is none.
    pub fn remedy(&self) -> Option<&str> {
        self.last().finding.remedy.as_deref()
    }

    /// Advice about the code that the instance, or the child at the end of the chain, waits for: the live nodes that register it, or
    /// the runtime to start. `None` once the item is due for 5 seconds, because the sentence then has the advice.
    pub fn early_advice(&self) -> Option<&str> {
        self.last().finding.early_advice.as_deref()
    }

    /// The diagnosis at the end of the chain of children.
    fn last(&self) -> &Diagnosis {
        let mut last = self;
        while let Some(child) = &last.of_child {
            last = child;
        }
        last
    }

    /// The sentence. It is one line, and holds no payload.
    pub fn sentence(&self) -> String {
        format!("Instance {} {}.", quoted(&self.instance), self.predicate())
    }

    /// The sentence without its subject, which is the instance, and without its full stop.
    pub fn predicate(&self) -> String {
        let mut text = self.finding.says.clone();
        let mut last = self;
        while let Some(child) = &last.of_child {
            text.push_str(&format!(", which {}", child.finding.says));
            last = child;
        }
        if let Some(remedy) = &last.finding.remedy {
            text.push_str(&format!(": `{remedy}`"));
        }
        text
    }
}
