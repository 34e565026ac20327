//! Activities: run the handler under a lease, then commit its outcome.
//!
//! | event while the handler runs | what the runtime does |
//! |---|---|
//! | the handler returns | commits the outcome |
//! | the handler asks for another attempt | gives the activity back with the failure, which the store keeps |
//! | a commit of this process cancels the activity | fires the handler's cancellation token, waits for the grace period, discards the outcome |
//! | the lease is lost: it expired, or another process cancelled the activity | as for a cancelled activity; the store is not called |
//! | the runtime stops | gives the activity back without counting the delivery |

mod observed;

use super::backoff::pause_report;
use super::gather::{self, Member};
use super::lease::{Kind, Lease};
use super::noted;
use super::run_ahead;
use super::slot::{Fetched, Queue, commit_in_task};
use super::start::Started;
use super::unregistered;
use super::unregistered_pause::UnregisteredPause;
use crate::activity_context::{ActivityContext, ActivityIdentity};
use crate::core::Core;
use crate::handler::{ActivityHandler, Attempt};
use crate::observability::Stopwatch;
use crate::observe;
use crate::observer::{ActivityOutcome, Times};
use outlast_model::defect::{self, Defect};
use outlast_model::{AppErrorKind, ErrorDetails, EventKind, PoisonMessageType, WorkItem};
use outlast_provider::{Completion, FetchedWork, ProviderError, SessionFetchConfig, WorkNotes, WorkRequest};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// The queue of activities.
pub(crate) struct ActivityQueue;

/// An activity that was fetched.
pub(crate) struct LeasedActivity {
    fetched: FetchedWork,
    /// Set if the outcome may gather with the outcomes of other activities.
    member: Option<Member>,
}

impl Queue for ActivityQueue {
    type Item = LeasedActivity;

    fn kind(&self) -> Kind {
        Kind::Activity
    }

    fn name(&self) -> &'static str {
        "activities"
    }

    fn waiting<'a>(&self, core: &'a Core) -> &'a Notify {
        &core.activities_waiting
    }

    fn unregistered_pause<'a>(&self, core: &'a Core) -> &'a UnregisteredPause {
        &core.activity_backoff
    }

    async fn fetch(&self, core: &Core, slot: usize) -> Result<Fetched<LeasedActivity>, ProviderError> {
        let freed = core.sessions.freed.notified();
        // An activity of a session is not leased ahead: the session would stay here while other nodes are idle.
        let is_permanent = core.further_slots(Kind::Activity).is_permanent(slot);
        let has_room = is_permanent && core.sessions.has_room();
        let session = SessionFetchConfig {
            owner_id: core.session_owner(slot),
            lock_timeout: core.options.session_lock_timeout,
        };
        let request = WorkRequest {
            max_items: 1,
            lock_timeout: core.options.worker_lock_timeout,
            poll_timeout: core.options.dispatcher_long_poll_timeout,
            session: Some(&session).filter(|_| has_room),
            tag_filter: &core.options.worker_tag_filter,
        };
        tokio::select! {
            biased;
            fetched = core.store.fetch_work_items(request) => {
                let leased = |fetched| Fetched::Item(LeasedActivity { fetched, member: None });
                Ok(fetched?.pop().map_or(Fetched::Nothing, leased))
            }
            // The parked fetch accepts no new sessions, and the limit of sessions is no longer reached.
            () = freed, if is_permanent && !has_room => Ok(Fetched::Outdated),
        }
    }

    fn hold(&self, core: &Core, leased: &mut LeasedActivity) -> (Lease, u32) {
        let LeasedActivity { fetched, member } = leased;
        core.metrics.record_worker_dispatcher_items_fetched(1);
        core.store_time.reported(fetched.now_ms);
        let token = std::mem::take(&mut fetched.lock_token);
        let instance: Arc<str> = fetched.item.target_instance().into();
        // Turns run ahead under first deliveries only, at the time that the store reported.
        if let (WorkItem::ActivityExecute { execution_id, id, .. }, 1, Some(_), Some(gathering)) =
            (&fetched.item, fetched.attempt_count, fetched.now_ms, &core.gathering)
        {
            *member = Some(gathering.enter(Arc::clone(&instance), *execution_id, *id));
        }
        let activity = match &fetched.item {
            WorkItem::ActivityExecute { execution_id, id, .. } => Some((*execution_id, *id)),
            _ => None,
        };
        (core.leases.hold_activity(core, token, instance, activity), fetched.attempt_count)
    }

    async fn process(&self, core: &Arc<Core>, leased: LeasedActivity, lease: Lease, started: Started<'_>) {
        let LeasedActivity { fetched, member } = leased;
        let FetchedWork { item, lock_token: _, attempt_count, notes, orchestration, now_ms } = fetched;
        let instance: Arc<str> = item.target_instance().into();
        let WorkItem::ActivityExecute { instance: _, execution_id, id, name, input, session_id, tag } = item
        else {
            tracing::error!(target: "duroxide::runtime", instance_id = %instance, kind = item.kind_name(), "not an activity; it stays in the worker queue");
            return lease.give_back(core, Some(core.options.unregistered_backoff.max_delay), true).await;
        };
        let delivery = Delivery {
            core: Arc::clone(core),
            worker: started.worker(),
            instance,
            execution_id,
            id,
            name,
            session_id,
            tag,
            attempt_count,
            notes,
            fetched_at: now_ms.map(|now_ms| (now_ms, started.fetched)),
            times: None,
        };
        delivery.process(lease, started, input, orchestration, member).await;
    }
}

/// One delivery of an activity to a slot.
struct Delivery {
    core: Arc<Core>,
    worker: usize,
    instance: Arc<str>,
    execution_id: u64,
    id: u64,
    name: String,
    session_id: Option<String>,
    tag: Option<String>,
    /// The number of deliveries without a reported failure, this one included.
    attempt_count: u32,
    /// The failures that the store keeps; `None` if the store counts them as deliveries.
    notes: Option<WorkNotes>,
    /// The store's time at the fetch, if the store reports it, and a stopwatch that was started then.
    fetched_at: Option<(u64, Stopwatch)>,
    /// The times of the run, for the observer.
    times: Option<Times>,
}

/// The logged cause for a registered activity that exceeded `max_attempts` deliveries.
const NO_OUTCOME: &str = "no delivery led to an outcome: the process ended or lost its lease while the activity ran, or \
                          nodes that do not have the activity took it; this node has it";

/// The delay of an activity that this runtime gives back: its session would exceed the limit, or its outcome was not committed.
const GIVE_BACK_DELAY: Duration = Duration::from_millis(100);

impl Delivery {
    /// Runs the activity and passes its outcome to a task that commits it. Poisons the activity if it was delivered too often, and gives
    /// it back if its handler is not registered or its session would exceed the limit of sessions.
    async fn process(
        mut self,
        lease: Lease,
        started: Started<'_>,
        input: String,
        orchestration: Option<(String, String)>,
        member: Option<Member>,
    ) {
        let core = &Arc::clone(&self.core);
        let is_early = self.attempt_count > 2 && defect::is_on(Defect::PoisonTooEarly);
        if self.attempt_count > core.options.max_attempts || is_early {
            return self.poison(lease).await;
        }
        let Some((_, handler)) = core.activities.resolve_handler(&self.name) else {
            return self.give_back_unregistered(lease).await;
        };
        let in_session = self.session_id.as_deref().map(|session| core.sessions.enter(session));
        if matches!(in_session, Some(None)) {
            return lease.give_back(core, Some(GIVE_BACK_DELAY), true).await;
        }
        let running =
            core.running.enter(Arc::clone(&self.instance), self.execution_id, self.id, lease.lost().clone());
        let context = self.context(&lease, orchestration).await;
        let (since, times) = (Stopwatch::start(), Times::start(core));
        let outcome = self.call(handler, context, input, &lease).await;
        drop((running, in_session, started.code_ended(core)));
        let took = since.elapsed();
        self.times = times.map(|times| times.after(took));
        observe::activity(core, &self.report(&outcome), took);
        if !matches!(outcome, Outcome::Failed { .. }) {
            core.retries.remove(&self.instance, self.execution_id, self.id);
        }
        match outcome {
            Outcome::Failed { error, retry_after } => {
                drop(member);
                let bytes = error.len();
                let noted = async move {
                    if noted::give_back(&self.core, lease, retry_after, &error).await {
                        self.observe(ActivityOutcome::Retried(retry_after));
                    }
                };
                commit_in_task(core, ActivityQueue.name(), bytes, Box::pin(noted)).await;
            }
            Outcome::Returned(result) => {
                let bytes = match &result {
                    Ok(text) => text.len(),
                    Err(details) => details.text_bytes(),
                };
                let member = member.filter(|_| bytes <= gather::MOST_BYTES);
                let committed = async move {
                    self.commit(lease, result, member).await;
                };
                commit_in_task(core, ActivityQueue.name(), bytes, Box::pin(committed)).await;
            }
            // The activity was cancelled or another process holds its lease, so the store is not called (C4).
            Outcome::Cancelled => lease.settle(),
        }
    }

    /// Commits the failure of an activity that exceeded `max_attempts` deliveries.
    async fn poison(&mut self, lease: Lease) {
        self.times = Times::start(&self.core);
        let core = &self.core;
        let cause = unregistered::activity(core, &self.name);
        tracing::warn!(
            target: "duroxide::runtime",
            instance_id = %self.instance,
            activity_name = %self.name,
            activity_id = self.id,
            attempts = self.attempt_count,
            max_attempts = core.options.max_attempts,
            cause = cause.as_deref().unwrap_or(NO_OUTCOME),
            "activity is poisoned"
        );
        let details = self.poison_details(cause);
        core.retries.remove(&self.instance, self.execution_id, self.id);
        let uncounted = core.uncounted.enter(&self.instance);
        if self.commit(lease, Err(details), None).await {
            core.metrics.record_activity_poison();
        }
        drop(uncounted);
    }

    /// Gives back an activity whose handler is not registered on this node; the delivery is counted.
    async fn give_back_unregistered(&self, lease: Lease) {
        let core = &self.core;
        tracing::warn!(
            target: "duroxide::runtime",
            instance_id = %self.instance,
            activity_name = %self.name,
            activity_id = self.id,
            attempts = self.attempt_count,
            max_attempts = core.options.max_attempts,
            cause = unregistered::activity(core, &self.name).unwrap_or_default(),
            "activity is not registered here; it waits for a node that has it, and fails after max_attempts deliveries"
        );
        let delay = core.options.unregistered_backoff.delay(self.attempt_count);
        core.activity_backoff.plan_pause(delay);
        lease.give_back(core, Some(delay), false).await;
    }

    /// The number of runs of the handler that failed and asked for another attempt.
    fn failures(&self) -> u32 {
        self.notes.as_ref().map_or(self.attempt_count.saturating_sub(1), |notes| notes.failures)
    }

    /// The number of this delivery, counted from 1.
    fn number(&self) -> u32 {
        let reported = self.notes.as_ref().map_or(0, |notes| notes.failures);
        self.attempt_count.saturating_add(reported)
    }

    fn report<'b>(&'b self, outcome: &'b Outcome) -> observe::Activity<'b> {
        observe::Activity {
            instance: &self.instance,
            execution_id: self.execution_id,
            id: self.id,
            name: &self.name,
            tag: self.tag.as_deref(),
            attempt: self.number(),
            attempts_before: self.core.retries.attempts_before(&self.instance, self.execution_id, self.id),
            run: match outcome {
                Outcome::Returned(result) => observe::Run::Returned(result),
                Outcome::Failed { retry_after, .. } => observe::Run::Retried(*retry_after),
                Outcome::Cancelled => observe::Run::Cancelled,
            },
        }
    }

    /// The failure of an activity that exceeded `max_attempts` deliveries: the cause, and the last error of the handler if the
    /// store keeps it.
    fn poison_details(&self, cause: Option<String>) -> ErrorDetails {
        ErrorDetails::Poison {
            attempt_count: self.attempt_count,
            max_attempts: self.core.options.max_attempts,
            message_type: PoisonMessageType::Activity {
                instance: self.instance.to_string(),
                execution_id: self.execution_id,
                activity_name: self.name.clone(),
                activity_id: self.id,
            },
            message: match (cause, self.notes.as_ref().and_then(|notes| notes.last_error.as_deref())) {
                (Some(cause), last) => ErrorDetails::message_with_cause(&cause, last.unwrap_or_default()),
                (None, Some(last)) => format!("the last error of the activity: {last}"),
                (None, None) => String::new(),
            },
        }
    }

    /// The context for the handler. `orchestration` is the name and version of the orchestration; without them the history is read.
    async fn context(&self, lease: &Lease, orchestration: Option<(String, String)>) -> ActivityContext {
        let (orchestration_name, orchestration_version) = match orchestration {
            Some(orchestration) => orchestration,
            None => read_orchestration(&self.core, &self.instance).await,
        };
        let identity = ActivityIdentity {
            instance_id: self.instance.to_string(),
            execution_id: self.execution_id,
            orchestration_name,
            orchestration_version,
            activity_name: self.name.clone(),
            activity_id: self.id,
            worker_id: self.core.worker_id(self.worker),
            session_id: self.session_id.clone(),
            tag: self.tag.clone(),
            deliveries: self.number(),
            failures: self.failures(),
        };
        let store = Arc::clone(&self.core.store);
        let traceparent = match &self.core.observer {
            Some(observer) => observer.traceparent(&self.observed()).await,
            None => None,
        };
        ActivityContext::new(identity, lease.lost().child_token(), store, Arc::clone(lease.deadline_ms()))
            .with_settings(self.core.options.codec, Arc::clone(&self.core.limits))
            .with_traceparent(traceparent)
    }

    /// Runs the handler in a separate task, so that a panic ends only that task and the runtime can abort it.
    async fn call(
        &self,
        handler: Arc<dyn ActivityHandler>,
        context: ActivityContext,
        input: String,
        lease: &Lease,
    ) -> Outcome {
        let mut task = AbortOnDrop(self.spawn(handler, context, input));
        let joined = tokio::select! {
            biased;
            joined = &mut task.0 => joined,
            () = lease.lost().cancelled() => {
                self.await_cancelled(task).await;
                return Outcome::Cancelled;
            }
        };
        if lease.lost().is_cancelled() {
            return Outcome::Cancelled;
        }
        Outcome::Returned(match joined {
            Ok(Attempt::Retry { error, after }) => return Outcome::Failed { error, retry_after: after },
            Ok(Attempt::Done(Ok(result))) => self.checked("result", result).map_err(failed),
            Ok(Attempt::Done(Err(error))) => {
                Err(failed(self.checked("error", error).unwrap_or_else(|too_large| too_large)))
            }
            Err(panic) => {
                let text = self.checked("panic", panic.to_string());
                Err(failed(text.unwrap_or_else(|too_large| too_large)))
            }
        })
    }

    /// Checks a text of the handler against `limits.payload_bytes`; `what` is "result", "error" or "panic". The error is a message.
    fn checked(&self, what: &str, text: String) -> Result<String, String> {
        let (size, limit) = (text.len(), self.core.limits.payload_bytes);
        if size <= limit {
            return Ok(text);
        }
        tracing::warn!(target: "duroxide::runtime", instance_id = %self.instance, activity_name = %self.name, what, size, limit, "an activity returned more bytes than the limit");
        Err(format!(
            "{what} of activity '{}' of instance '{}' has {size} bytes, the limit is {limit}: store it elsewhere and \
             return a reference, or raise limits.payload_bytes",
            self.name, self.instance
        ))
    }

    /// Waits until the cancelled handler ends, at most for the grace period, then aborts it.
    async fn await_cancelled(&self, mut task: AbortOnDrop) {
        let grace = self.core.options.activity_cancellation_grace_period;
        if tokio::time::timeout(grace, &mut task.0).await.is_err() {
            tracing::info!(target: "duroxide::runtime", instance_id = %self.instance, activity_name = %self.name, "a cancelled activity did not end in its grace period and is aborted");
        }
    }

    /// Runs the next turn of the instance ahead, if this is the first delivery of the activity and the instance qualifies. A turn
    /// that ends its process causes a second delivery; the turn then runs in a turn slot, where the store counts its deliveries.
    async fn run_ahead<'b>(
        &'b self,
        lease: &Lease,
        completion: &WorkItem,
    ) -> Option<run_ahead::RunAhead<'b>> {
        let now_ms = self.store_time()?;
        let completions = vec![completion.clone()];
        run_ahead::run(&self.core, lease, &self.instance, completions, now_ms, self.worker).await
    }

    /// The store's time, if turns may run ahead under this delivery.
    fn store_time(&self) -> Option<u64> {
        let (now_ms, since) = self.fetched_at.as_ref().filter(|_| self.attempt_count == 1)?;
        Some(now_ms.saturating_add(since.whole_ms()))
    }

    /// Commits the outcome together with the outcomes of the other activities that the instance waits for, if it can. Returns
    /// whether the store accepted the outcome.
    async fn commit_gathered(&self, lease: &Lease, completion: &WorkItem, member: Option<Member>) -> bool {
        let (Some(member), Some(now_ms)) = (member, self.store_time()) else { return false };
        let (instance, worker) = (&self.instance, self.worker);
        gather::commit(&self.core, member, gather::Ready { lease, instance, completion, now_ms, worker })
            .await
    }

    /// Commits the outcome, with the run-ahead turn if there is one. Retries retryable errors while the lease lasts. Returns
    /// whether the store accepted the outcome.
    async fn commit(
        &self,
        lease: Lease,
        result: Result<String, ErrorDetails>,
        member: Option<Member>,
    ) -> bool {
        let (instance, execution_id, id) = (self.instance.to_string(), self.execution_id, self.id);
        let completion = match result {
            Ok(result) => WorkItem::ActivityCompleted { instance, execution_id, id, result },
            Err(details) => WorkItem::ActivityFailed { instance, execution_id, id, details },
        };
        let core = &self.core;
        let outcome = match &completion {
            WorkItem::ActivityFailed { details, .. } => ActivityOutcome::Failed(details),
            _ => ActivityOutcome::Completed,
        };
        if self.commit_gathered(&lease, &completion, member).await {
            lease.settle();
            self.observe(outcome);
            return true;
        }
        let ahead = self.run_ahead(&lease, &completion).await;
        let mut failures = 0;
        loop {
            let (token, completion) = (lease.token(), completion.clone());
            let answer = match &ahead {
                Some(ahead) => core.store.complete_with_turn(token, completion, ahead.turn()).await,
                None => core.store.ack_work_item(token, Some(completion)).await.map(|()| Completion::Queued),
            };
            match answer {
                Ok(completed) => {
                    match (completed, ahead) {
                        (Completion::WithTurn { at_ms }, Some(ahead)) => ahead.on_committed(at_ms),
                        (_, ahead) => {
                            if let Some(ahead) = ahead {
                                ahead.on_rejected();
                            }
                            core.turns_waiting.notify_waiters();
                        }
                    }
                    lease.settle();
                    self.observe(outcome);
                    return true;
                }
                Err(_) if defect::is_on(Defect::OutcomeGivenUp) => {
                    let _ = core.store.ack_work_item(lease.token(), None).await;
                    lease.settle();
                    return false;
                }
                Err(error) if error.is_retryable() && !lease.lost().is_cancelled() => {
                    failures += 1;
                    pause_report(core, &lease, failures).await;
                }
                Err(error) => {
                    tracing::warn!(target: "duroxide::runtime::worker", instance_id = %self.instance, activity_name = %self.name, %error, "the store did not accept the outcome of an activity; the activity runs again unless it was cancelled");
                    core.metrics.record_activity_infra_error();
                    lease.give_back(core, Some(GIVE_BACK_DELAY), true).await;
                    return false;
                }
            }
        }
    }
}

enum Outcome {
    Returned(Result<String, ErrorDetails>),
    /// The handler failed and asks for another attempt.
    Failed {
        error: String,
        retry_after: Duration,
    },
    Cancelled,
}

/// A task that is aborted when its handle is dropped.
struct AbortOnDrop(JoinHandle<Attempt>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn failed(message: String) -> ErrorDetails {
    ErrorDetails::Application { kind: AppErrorKind::ActivityFailed, message, retryable: false }
}

/// Name and version of the orchestration that scheduled the activity, for stores that do not return them with the activity.
async fn read_orchestration(core: &Core, instance: &str) -> (String, String) {
    let history = core.store.read(instance).await.unwrap_or_default();
    let started = history.into_iter().rev().find_map(|event| match event.kind {
        EventKind::OrchestrationStarted { name, version, .. } => Some((name, version)),
        _ => None,
    });
    started.unwrap_or_else(|| ("unknown".to_string(), "unknown".to_string()))
}

#[cfg(test)]
mod tests;
