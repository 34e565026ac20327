//! Requests of callers to the lanes.

use crate::PostgresError;
use crate::reply::Reply;
use outlast_model::WorkItem;
use outlast_provider::{
    Completion, EagerStart, ErrorClass, FusedCompletion, LeasedOutcome, ProviderError, StartOutcome,
    StartPolicy, TurnAhead, TurnCommit,
};
use outlast_provider_kit::plan::{check_completion, completion_row, message_row};
use outlast_provider_kit::token::{self, Secret};
use outlast_provider_kit::{ActivityRow, CommitPlan, MessageRow, TurnAtFetch, invalid_token};
use std::collections::HashMap;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

pub(crate) type Answer<T> = Result<T, ProviderError>;

/// A lease, as its token encodes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lease {
    /// The lease of an instance.
    Turn { secret: Secret, at_fetch: TurnAtFetch<String> },
    /// The lease of an activity, by the id of its row.
    Activity { secret: Secret, id: i64 },
}

impl Lease {
    /// The lease of a turn; refused for a text that is no token of this store.
    pub(crate) fn of_turn(operation: &str, text: &str) -> Answer<Self> {
        let parsed = || {
            let (secret, key) = token::parse(text)?;
            Some(Self::Turn { secret, at_fetch: TurnAtFetch::parse(key)?.to_owned() })
        };
        parsed().ok_or_else(|| refused_token(operation, text))
    }

    /// The lease of an activity; refused for a text that is no token of this store.
    pub(crate) fn of_activity(operation: &str, text: &str) -> Answer<Self> {
        let parsed = || {
            let (secret, id) = token::parse(text)?;
            Some(Self::Activity { secret, id: id.parse().ok()? })
        };
        parsed().ok_or_else(|| refused_token(operation, text))
    }

    pub(crate) fn secret(&self) -> &Secret {
        let (Self::Turn { secret, .. } | Self::Activity { secret, .. }) = self;
        secret
    }

    /// The instance, or the row of the activity.
    pub(crate) fn subject(&self) -> String {
        match self {
            Self::Turn { at_fetch, .. } => at_fetch.instance.clone(),
            Self::Activity { id, .. } => format!("of the activity in row {id}"),
        }
    }

    /// The token.
    pub(crate) fn text(&self) -> String {
        let random = u128::from_be_bytes(*self.secret());
        match self {
            Self::Turn { at_fetch, .. } => format!("lock_{random:032x}.{at_fetch}"),
            Self::Activity { id, .. } => format!("lock_{random:032x}.{id}"),
        }
    }
}

pub(crate) fn refused_token(operation: &str, text: &str) -> ProviderError {
    ProviderError::permanent(operation, invalid_token(text)).of_class(ErrorClass::Refused)
}

/// The attempts to send a request, and the time since which its result is unknown.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Attempts {
    pub(crate) made: u32,
    pub(crate) in_doubt: Option<Instant>,
}

/// The condition under which the server stores a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fence {
    /// The caller holds the lease of a turn or an activity.
    Lease(Lease),
    /// The caller holds the leases of all these activities of one instance, and the turn of their outcomes follows the stored history.
    Fused { instance: String, leases: Vec<ActivityLease> },
    /// Of a start: the server has no row of the instance.
    Unknown { instance: String },
}

/// The lease of an activity, by the id of its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ActivityLease {
    pub(crate) id: i64,
    pub(crate) secret: Secret,
}

impl Fence {
    /// The lease of a turn or of a single activity.
    pub(crate) fn lease(&self) -> Option<&Lease> {
        match self {
            Self::Lease(lease) => Some(lease),
            Self::Fused { .. } | Self::Unknown { .. } => None,
        }
    }
}

/// The result of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Committed {
    /// The turn is stored, at this time of the store.
    WithTurn { at_ms: u64 },
    /// The outcome waits for a turn.
    Queued,
    /// Of fused outcomes and starts: nothing is stored.
    Unchanged,
}

impl From<Committed> for FusedCompletion {
    fn from(committed: Committed) -> Self {
        match committed {
            Committed::WithTurn { at_ms } => Self::WithTurn { at_ms },
            Committed::Queued | Committed::Unchanged => Self::Unchanged,
        }
    }
}

impl From<Committed> for EagerStart {
    fn from(committed: Committed) -> Self {
        match committed {
            Committed::WithTurn { at_ms } => Self::WithTurn { at_ms },
            Committed::Queued | Committed::Unchanged => Self::Unchanged,
        }
    }
}

impl From<Committed> for Completion {
    fn from(committed: Committed) -> Self {
        match committed {
            Committed::WithTurn { at_ms } => Self::WithTurn { at_ms },
            Committed::Queued | Committed::Unchanged => Self::Queued,
        }
    }
}

/// A turn to be committed, an activity to be completed, or both; several activities with the turn of their outcomes; or the start of
/// an instance with its first turn.
pub(crate) struct Commit {
    pub(crate) fence: Fence,
    /// The outcome of an activity. Fused outcomes and starts are in the turn only.
    pub(crate) completion: Option<MessageRow>,
    /// The writes of the turn.
    pub(crate) plan: Option<CommitPlan>,
    /// For a turn that was run ahead, and for a first turn: the event that the turn follows, and the time at which the turn ran.
    pub(crate) ahead: Option<(u64, u64)>,
    pub(crate) reply: Reply<Committed>,
    pub(crate) attempts: Attempts,
}

impl Commit {
    /// A turn under its lease; refused for a text that is no token of this store.
    pub(crate) fn of_turn(reply: Reply<Committed>, token: &str, turn: TurnCommit) -> Answer<Self> {
        let fence = Fence::Lease(Lease::of_turn(reply.operation, token)?);
        let plan = Some(CommitPlan::of(turn)?);
        Ok(Self { fence, completion: None, plan, ahead: None, reply, attempts: Attempts::default() })
    }

    /// An activity with or without its outcome, and with the turn that was run ahead for that outcome.
    pub(crate) fn of_activity(
        reply: Reply<Committed>,
        token: &str,
        completion: Option<&WorkItem>,
        turn: Option<TurnAhead>,
    ) -> Answer<Self> {
        let completion = completion.map(|item| completion_row(reply.operation, item)).transpose()?;
        let fence = Fence::Lease(Lease::of_activity(reply.operation, token)?);
        let ahead = turn.as_ref().map(|turn| (turn.after_event_id, turn.ran_at_ms));
        let plan = turn.map(|turn| CommitPlan::of(turn.commit)).transpose()?;
        Ok(Self { fence, completion, plan, ahead, reply, attempts: Attempts::default() })
    }

    /// Several activities of one instance with the turn of their outcomes. `None` stands for a lost lease: a text is no token of
    /// this store, or a token is given twice.
    pub(crate) fn of_outcomes(
        reply: Reply<Committed>,
        outcomes: &[LeasedOutcome],
        turn: TurnAhead,
    ) -> Answer<Option<Self>> {
        let Some(instance) = LeasedOutcome::instance_of(outcomes).map(str::to_string) else {
            let reason = "the outcomes are of different instances, or there are none";
            return Err(ProviderError::permanent(reply.operation, reason));
        };
        outcomes.iter().try_for_each(|outcome| check_completion(reply.operation, &outcome.completion))?;
        let ahead = Some((turn.after_event_id, turn.ran_at_ms));
        let plan = Some(CommitPlan::of(turn.commit)?);
        let lease = |outcome: &LeasedOutcome| {
            let (secret, id) = token::parse(&outcome.lock_token)?;
            Some(ActivityLease { id: id.parse().ok()?, secret })
        };
        let Some(mut leases) = outcomes.iter().map(lease).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        leases.sort_unstable_by_key(|lease| lease.id);
        if leases.windows(2).any(|pair| pair[0].id == pair[1].id) {
            return Ok(None);
        }
        let fence = Fence::Fused { instance, leases };
        Ok(Some(Self { fence, completion: None, plan, ahead, reply, attempts: Attempts::default() }))
    }

    /// A start with the first turn of its instance.
    pub(crate) fn of_start(reply: Reply<Committed>, start: &WorkItem, turn: TurnAhead) -> Answer<Self> {
        let fence = Fence::Unknown { instance: message_row(reply.operation, start)?.instance_id };
        let ahead = Some((turn.after_event_id, turn.ran_at_ms));
        let plan = Some(CommitPlan::of(turn.commit)?);
        Ok(Self { fence, completion: None, plan, ahead, reply, attempts: Attempts::default() })
    }

    /// The instance, or the row of the activity.
    pub(crate) fn subject(&self) -> String {
        match (&self.completion, &self.fence) {
            (Some(row), _) => row.instance_id.clone(),
            (None, Fence::Fused { instance, .. } | Fence::Unknown { instance }) => instance.clone(),
            (None, fence) => fence.lease().map(Lease::subject).unwrap_or_default(),
        }
    }

    /// The token of the lease; empty for a start and for fused outcomes.
    pub(crate) fn token(&self) -> String {
        self.fence.lease().map(Lease::text).unwrap_or_default()
    }
}

/// A message to be enqueued. The reply is false if `most` messages wait already.
pub(crate) struct Message {
    pub(crate) row: MessageRow,
    pub(crate) begins: bool,
    pub(crate) delay_ms: u64,
    pub(crate) most: Option<usize>,
    pub(crate) reply: Reply<bool>,
}

/// An activity to be enqueued.
pub(crate) struct Activity {
    pub(crate) row: ActivityRow,
    pub(crate) reply: Reply<()>,
}

/// An instance to be started.
pub(crate) struct Start {
    pub(crate) start: MessageRow,
    pub(crate) messages: Vec<MessageRow>,
    pub(crate) delay_ms: u64,
    pub(crate) policy: StartPolicy,
    pub(crate) reply: Reply<StartOutcome>,
}

/// A lease to be prolonged.
pub(crate) struct Renew {
    pub(crate) lease: Lease,
    pub(crate) extend_ms: u64,
    pub(crate) reply: Reply<()>,
    pub(crate) attempts: Attempts,
}

/// A lease to be given back.
pub(crate) struct Abandon {
    pub(crate) lease: Lease,
    pub(crate) delay_ms: Option<u64>,
    pub(crate) ignore_attempt: bool,
    /// The failure of an activity's handler.
    pub(crate) note: Option<String>,
    pub(crate) reply: Reply<()>,
    pub(crate) attempts: Attempts,
}

/// Texts of messages to be read that a fetch has left out. The reply has the texts of the messages that the lease still covers, by
/// the ids of their rows.
pub(crate) struct ReadTexts {
    pub(crate) lease: Lease,
    pub(crate) ids: Vec<i64>,
    /// The bytes of the texts.
    pub(crate) bytes: usize,
    pub(crate) reply: Reply<HashMap<i64, String>>,
    pub(crate) attempts: Attempts,
}

/// Any request.
pub(crate) enum Request {
    Commit(Box<Commit>),
    Message(Message),
    Activity(Activity),
    Start(Start),
    Renew(Renew),
    Abandon(Abandon),
    ReadTexts(ReadTexts),
}

impl Request {
    /// Whether the request comes from a client, and not from the holder of a lease.
    pub(crate) fn is_client_request(&self) -> bool {
        match self {
            Self::Commit(commit) => matches!(commit.fence, Fence::Unknown { .. }),
            Self::Message(_) | Self::Activity(_) | Self::Start(_) => true,
            Self::Renew(_) | Self::Abandon(_) | Self::ReadTexts(_) => false,
        }
    }

    /// The instance of the request, or the row of its activity.
    pub(crate) fn subject(&self) -> String {
        match self {
            Self::Commit(commit) => commit.subject(),
            Self::Message(message) => message.row.instance_id.clone(),
            Self::Activity(activity) => activity.row.instance_id.clone(),
            Self::Start(start) => start.start.instance_id.clone(),
            Self::Renew(renew) => renew.lease.subject(),
            Self::Abandon(abandon) => abandon.lease.subject(),
            Self::ReadTexts(read) => read.lease.subject(),
        }
    }

    /// Replies with an error.
    pub(crate) fn fail(self, error: &PostgresError) {
        match self {
            Self::Commit(commit) => commit.reply.send(Err(error)),
            Self::Message(message) => message.reply.send(Err(error)),
            Self::Activity(activity) => activity.reply.send(Err(error)),
            Self::Start(start) => start.reply.send(Err(error)),
            Self::Renew(renew) => renew.reply.send(Err(error)),
            Self::Abandon(abandon) => abandon.reply.send(Err(error)),
            Self::ReadTexts(read) => read.reply.send(Err(error)),
        }
    }

    /// The attempts of a request that a lease fences.
    pub(crate) fn attempts(&self) -> Option<Attempts> {
        match self {
            Self::Commit(commit) => Some(commit.attempts),
            Self::Renew(renew) => Some(renew.attempts),
            Self::Abandon(abandon) => Some(abandon.attempts),
            Self::ReadTexts(read) => Some(read.attempts),
            Self::Message(_) | Self::Activity(_) | Self::Start(_) => None,
        }
    }

    pub(crate) fn is_in_doubt(&self) -> bool {
        self.attempts().is_some_and(|attempts| attempts.in_doubt.is_some())
    }

    pub(crate) fn set_attempts(&mut self, attempts: Attempts) {
        match self {
            Self::Commit(commit) => commit.attempts = attempts,
            Self::Renew(renew) => renew.attempts = attempts,
            Self::Abandon(abandon) => abandon.attempts = attempts,
            Self::ReadTexts(read) => read.attempts = attempts,
            Self::Message(_) | Self::Activity(_) | Self::Start(_) => {}
        }
    }

    /// The bytes of payload of the request.
    pub(crate) fn bytes(&self) -> usize {
        let message = |row: &MessageRow| row.work_item.len();
        match self {
            Self::Commit(commit) => {
                let plan = commit.plan.as_ref().map_or(0, |plan| {
                    plan.history.iter().map(|row| row.event_data.len()).sum::<usize>()
                        + plan.activities.iter().map(|row| row.work_item.len()).sum::<usize>()
                        + plan.messages.iter().map(message).sum::<usize>()
                });
                plan + commit.completion.as_ref().map_or(0, message)
            }
            Self::Message(request) => message(&request.row),
            Self::Activity(activity) => activity.row.work_item.len(),
            Self::Start(start) => message(&start.start) + start.messages.iter().map(message).sum::<usize>(),
            Self::ReadTexts(read) => read.bytes,
            Self::Renew(_) | Self::Abandon(_) => 0,
        }
    }

    /// Keeps room until the request is answered.
    pub(crate) fn keep(&mut self, room: OwnedSemaphorePermit) {
        let place = match self {
            Self::Commit(commit) => &mut commit.reply.room,
            Self::Message(message) => &mut message.reply.room,
            Self::Activity(activity) => &mut activity.reply.room,
            Self::Start(start) => &mut start.reply.room,
            Self::Renew(renew) => &mut renew.reply.room,
            Self::Abandon(abandon) => &mut abandon.reply.room,
            Self::ReadTexts(read) => &mut read.reply.room,
        };
        *place = Some(room);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_text_round_trips_to_its_lease() {
        for is_partial in [false, true] {
            let instance = "a.b.1 🦀".to_string();
            let at_fetch = TurnAtFetch { current_execution: 3, messages: 7, is_partial, instance };
            let turn = Lease::Turn { secret: [7; 16], at_fetch };
            assert_eq!(Lease::of_turn("op", &turn.text()), Ok(turn));
        }
        let activity = Lease::Activity { secret: [255; 16], id: 9 };
        assert_eq!(Lease::of_activity("op", &activity.text()), Ok(activity.clone()));
        let refusal = Lease::of_turn("op", &activity.text()).unwrap_err();
        assert!(refusal.message.contains("Invalid lock token") && !refusal.retryable);
        assert!(Lease::of_activity("op", "bogus").is_err());
    }

    #[test]
    fn fused_outcomes_need_a_different_token_for_each_activity() {
        let token = |id| Lease::Activity { secret: [1; 16], id }.text();
        let fence = |tokens: &[String]| {
            let completion = |id| WorkItem::ActivityCompleted {
                instance: "i".to_string(),
                execution_id: 1,
                id,
                result: String::new(),
            };
            let outcome = |(token, id): (&String, u64)| LeasedOutcome {
                lock_token: token.clone(),
                completion: completion(id),
            };
            let outcomes: Vec<LeasedOutcome> = tokens.iter().zip(2..).map(outcome).collect();
            let turn = TurnAhead { after_event_id: 3, ran_at_ms: 1, commit: TurnCommit::default() };
            let commit = Commit::of_outcomes(Reply::channel("op").0, &outcomes, turn);
            commit.map(|commit| commit.map(|commit| commit.fence))
        };
        let lease = |id| ActivityLease { id, secret: [1; 16] };
        let both = Fence::Fused { instance: "i".to_string(), leases: vec![lease(7), lease(9)] };
        assert_eq!(fence(&[token(9), token(7)]), Ok(Some(both)), "by their rows");
        assert_eq!(fence(&[token(9), token(9)]), Ok(None), "the same activity");
        assert_eq!(fence(&[token(9), "bogus".to_string()]), Ok(None), "no token");
        assert!(fence(&[]).is_err(), "no outcome");
    }
}
