//! Reset and fork of instances.

use super::{Client, ClientError};
use outlast_engine::KvValue;
use outlast_engine::reset::{Branch, ChildState, Cut, CutChild, CutError, ResetSummary};
use outlast_model::{AuditEntry, ExecutionStatus, ResetPlan, check_instance_id};
use outlast_provider::{Interest, ProviderError, ResetOutcome};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

const RESET: &str = "instance.reset";
const FORK: &str = "instance.fork";
/// The longest wait for a running turn.
const LONGEST_TURN: Duration = Duration::from_secs(60);
/// The pause between two tries while a turn runs.
const TRY_AGAIN: Duration = Duration::from_millis(20);

/// A reset or a fork, for [`Client::reset_instance`] and [`Client::fork_instance`].
///
/// ```
/// # use outlast_runtime::Reset;
/// let reset = Reset::to_event(7).by("ada").because("the charge was refused by mistake").cancel_children();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Reset {
    to_event: u64,
    cancel_children: bool,
    is_dry_run: bool,
    actor: String,
    reason: String,
}

impl Reset {
    /// Copies the events up to this event, which is the last kept event.
    pub fn to_event(event_id: u64) -> Self {
        let (actor, reason) = ("a client".to_string(), String::new());
        Self { to_event: event_id, cancel_children: false, is_dry_run: false, actor, reason }
    }

    /// Cancels running children whose outcome the new execution would not get. Without this, they refuse the reset. A fork never
    /// cancels children.
    pub fn cancel_children(self) -> Self {
        Self { cancel_children: true, ..self }
    }

    /// Plans and reports, and changes nothing.
    pub fn dry_run(self) -> Self {
        Self { is_dry_run: true, ..self }
    }

    /// The person or program, for the audit.
    pub fn by(self, actor: impl Into<String>) -> Self {
        Self { actor: actor.into(), ..self }
    }

    /// The reason, for the audit.
    pub fn because(self, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..self }
    }

    /// The last event that is kept.
    pub fn last_event(&self) -> u64 {
        self.to_event
    }

    /// Whether running children are cancelled whose outcome the new execution would not get.
    pub fn cancels_children(&self) -> bool {
        self.cancel_children
    }

    /// Whether the call only plans and reports.
    pub fn is_dry_run(&self) -> bool {
        self.is_dry_run
    }

    /// The reason, for the audit.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// Reset and fork repeat the newest execution of an instance after one of its events. The audit records both.
///
/// The new execution begins with a copy of the events up to that event. The code replays the copy and continues. Open activities
/// and timers of the copied events are scheduled again, queue messages after these events are sent again, and children that have
/// ended are answered with their outcome. An activity that is scheduled again has another idempotency key. Positional events after
/// the copied events are not repeated.
impl Client {
    /// Ends the newest execution of an instance, if it runs, and begins the next one with a copy of its first events. Its
    /// activities are cancelled. Waits for a running turn. A parent is not notified; the parent receives the outcome of the new
    /// execution, unless an outcome of this child has reached it before. A paused or parked instance stays held.
    ///
    /// Cancellation safety: when the future is dropped, the instance is reset or not.
    ///
    /// # Errors
    ///
    /// [`ClientError::InstanceNotFound`]; [`ClientError::InvalidInput`] if the history cannot be cut at that event, children refuse the
    /// reset, or the store cannot reset instances; [`ClientError::Timeout`] if a turn runs for more than a minute.
    pub async fn reset_instance(&self, instance: &str, reset: &Reset) -> Result<ResetSummary, ClientError> {
        self.branch(instance, None, reset).await
    }

    /// Starts a new instance with a copy of the first events of another instance, which continues. The new instance has no parent,
    /// and its execution has the number of the copied execution.
    ///
    /// Cancellation safety: when the future is dropped, the new instance exists or not.
    ///
    /// # Errors
    ///
    /// As [`Client::reset_instance`], and [`ClientError::InvalidInput`] if the new id is taken.
    pub async fn fork_instance(
        &self,
        instance: &str,
        new_id: &str,
        fork: &Reset,
    ) -> Result<ResetSummary, ClientError> {
        check_instance_id(new_id).map_err(|error| ClientError::invalid(error.to_string()))?;
        if instance == new_id {
            return Err(taken(new_id));
        }
        self.branch(instance, Some(new_id), fork).await
    }

    /// Plans and makes a reset, or a fork with `fork_id`. Plans again while a turn runs or the source changes.
    async fn branch(
        &self,
        instance: &str,
        fork_id: Option<&str>,
        reset: &Reset,
    ) -> Result<ResetSummary, ClientError> {
        let give_up = Instant::now() + LONGEST_TURN;
        loop {
            let watch = self.store.watch_instance(instance, Interest::Any);
            let (plan, summary) = self.plan_branch(instance, fork_id, reset).await?;
            if reset.is_dry_run {
                return Ok(summary);
            }
            match self.admin()?.reset_instance(&plan).await? {
                ResetOutcome::Done => return Ok(summary),
                ResetOutcome::InTurn { .. } | ResetOutcome::Changed => {
                    if Instant::now() >= give_up {
                        return Err(ClientError::Timeout);
                    }
                    tokio::select! {
                        _ = watch.unwrap_or_else(|| Box::pin(std::future::pending())) => {}
                        () = tokio::time::sleep(TRY_AGAIN) => {}
                    }
                }
                ResetOutcome::Taken => return Err(taken(&plan.target)),
                ResetOutcome::NotFound => return Err(unknown(instance)),
                _ => {
                    return Err(ClientError::invalid(
                        "this store cannot reset or fork instances: use a store that can, or start a new instance",
                    ));
                }
            }
        }
    }

    /// Reads the instance and its children, and plans the new execution.
    async fn plan_branch(
        &self,
        instance: &str,
        fork_id: Option<&str>,
        reset: &Reset,
    ) -> Result<(ResetPlan, ResetSummary), ClientError> {
        let admin = self.admin()?;
        let info = match admin.get_instance_info(instance).await {
            Ok(info) => info,
            Err(error) if error.is_retryable() => return Err(error.into()),
            Err(_) => return Err(unknown(instance)),
        };
        let loaded = self.store.load_turn(instance, info.current_execution_id).await?;
        if let Some(error) = loaded.history_error {
            return Err(ProviderError::permanent("reset_instance", error).into());
        }
        let stored_at = admin.pending(instance, 1).await?.map(|pending| pending.now_ms);
        let last_at = loaded.history.last().map_or(0, |event| event.timestamp_ms);
        let refused = |error: CutError| {
            ClientError::invalid(format!("instance '{instance}' cannot be {}: {error}", verb(fork_id)))
        };
        let cut = Cut::at(&loaded.history, reset.to_event).map_err(refused)?;
        let mut states = BTreeMap::new();
        for child in cut.children().iter().filter(|child| child.is_open()) {
            states.insert(child.event_id, self.child_state(child).await?);
        }
        let keys = loaded.kv_snapshot.into_iter().map(|(key, entry)| {
            (key, KvValue { value: entry.value, updated_at_ms: entry.last_updated_at_ms })
        });
        let branch = match fork_id {
            Some(id) => Branch::Fork { id },
            None => Branch::Reset { cancel_children: reset.cancel_children },
        };
        let audit = audit(instance, fork_id, info.current_execution_id, reset, self.request_id(None));
        cut.plan(branch, &keys.collect(), &states, audit, stored_at.unwrap_or(last_at)).map_err(refused)
    }

    /// The state of a child, as the plan of a reset needs it.
    async fn child_state(&self, child: &CutChild) -> Result<ChildState, ClientError> {
        let Some(outcome) = self.store.read_outcome(&child.instance).await? else {
            return Ok(ChildState::Running);
        };
        let text = outcome.output.clone().unwrap_or_default();
        Ok(match (outcome.execution_status(), outcome.failure) {
            (Some(ExecutionStatus::Completed), _) => ChildState::Completed(text),
            (Some(ExecutionStatus::Failed), Some(details)) => ChildState::Failed(details),
            _ => ChildState::Running,
        })
    }
}

/// The record of a reset or fork for the audit.
fn audit(
    instance: &str,
    fork_id: Option<&str>,
    execution_id: u64,
    reset: &Reset,
    request: Option<String>,
) -> AuditEntry {
    let (action, done) = match fork_id {
        Some(id) => {
            (FORK, format!("done: forked to '{id}' at event {} of execution {execution_id}", reset.to_event))
        }
        None => (RESET, format!("done: to event {} of execution {execution_id}", reset.to_event)),
    };
    AuditEntry {
        actor: reset.actor.clone(),
        action: action.to_string(),
        target: instance.to_string(),
        reason: reset.reason.clone(),
        request,
        result: done,
    }
}

fn verb(fork_id: Option<&str>) -> &'static str {
    if fork_id.is_some() { "forked" } else { "reset" }
}

fn taken(id: &str) -> ClientError {
    ClientError::invalid(format!("instance id '{id}' is taken: choose another id for the fork"))
}

fn unknown(instance: &str) -> ClientError {
    ClientError::InstanceNotFound { instance_id: instance.to_string() }
}
