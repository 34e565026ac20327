//! Activities: run the handler under a lease, then commit its outcome.
//!
//! | while it runs | then |
//! |---|---|
//! | the handler returns | its outcome is committed |
//! | it is cancelled (a commit of this process dropped it) | the handler is told, has the grace period, and its result is thrown away |
//! | the lease is lost (dropped elsewhere, or run out) | the same; nothing is acknowledged, so nothing can be lost |
//! | the runtime ends | it is given back, without counting a delivery |

use super::ahead;
use super::aside::Aside;
use super::backoff::backoff;
use super::lease::{Kind, Lease};
use super::slot::{Fetched, Queue, hand_off};
use super::unregistered;
use crate::activity_context::{ActivityContext, ActivityIdentity};
use crate::core::Core;
use crate::handler::ActivityHandler;
use crate::observability::Stopwatch;
use crate::observe;
use outlast_model::{AppErrorKind, ErrorDetails, EventKind, PoisonMessageType, WorkItem};
use outlast_provider::{Completion, FetchedWork, ProviderError, SessionFetchConfig, WorkRequest};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tracing::Instrument;

/// The queue of activities.
pub(crate) struct Works;

impl Queue for Works {
    type Item = FetchedWork;

    fn name(&self) -> &'static str {
        "activities"
    }

    fn waiting<'a>(&self, core: &'a Core) -> &'a Notify {
        &core.work_waiting
    }

    fn aside<'a>(&self, core: &'a Core) -> &'a Aside {
        &core.work_aside
    }

    async fn fetch(&self, core: &Core, slot: usize) -> Result<Fetched<FetchedWork>, ProviderError> {
        let freed = core.sessions.freed.notified();
        let has_room = core.sessions.has_room();
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
                Ok(fetched?.pop().map_or(Fetched::Nothing, Fetched::Item))
            }
            // Parked for work without sessions while there is room for them again.
            () = freed, if !has_room => Ok(Fetched::AskAgain),
        }
    }

    async fn process(&self, core: &Arc<Core>, slot: usize, fetched: FetchedWork) {
        core.metrics.record_worker_dispatcher_items_fetched(1);
        let since = Stopwatch::start();
        let FetchedWork { item, lock_token, attempt_count, orchestration, now_ms } = fetched;
        let subject: Arc<str> = item.target_instance().into();
        let lease = core.leases.hold(core, Kind::Activity, lock_token, Arc::clone(&subject));
        let WorkItem::ActivityExecute { instance: _, execution_id, id, name, input, session_id, tag } = item
        else {
            tracing::error!(target: "duroxide::runtime", instance_id = %subject, kind = item.kind_name(), "not an activity; it stays in the worker queue");
            return lease.give_back(core, Some(core.options.unregistered_backoff.max_delay), true).await;
        };
        let call = Call {
            core: Arc::clone(core),
            slot,
            instance: subject,
            execution_id,
            id,
            name,
            session_id,
            tag,
            attempt_count,
            fetched_at: now_ms.map(|now_ms| (now_ms, since)),
        };
        call.run(lease, input, orchestration).await;
    }
}

struct Call {
    core: Arc<Core>,
    slot: usize,
    instance: Arc<str>,
    execution_id: u64,
    id: u64,
    name: String,
    session_id: Option<String>,
    tag: Option<String>,
    attempt_count: u32,
    /// The store's time at the fetch, if it says so, and ours.
    fetched_at: Option<(u64, Stopwatch)>,
}

/// Why an activity that this node has was delivered too often.
const NO_OUTCOME: &str = "no delivery led to an outcome: the process ended or lost its lease while the activity ran, or \
                          nodes that do not have the activity took it; this node has it";

/// How long an item rests for which this runtime has no room.
const NO_ROOM: Duration = Duration::from_millis(100);

impl Call {
    async fn run(self, lease: Lease, input: String, orchestration: Option<(String, String)>) {
        let core = &Arc::clone(&self.core);
        if self.attempt_count > core.options.max_attempts {
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
            let details = self.poisoned(cause);
            core.retries.forget(&self.instance, self.execution_id, self.id);
            let counting = core.uncounted.enter(&self.instance);
            if self.acknowledge(lease, Err(details)).await {
                core.metrics.record_activity_poison();
            }
            drop(counting);
            return;
        }
        let Some((_, handler)) = core.activities.resolve_handler(&self.name) else {
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
            core.work_aside.after(delay);
            return lease.give_back(core, Some(delay), false).await;
        };
        let busy = self.session_id.as_deref().map(|session| core.sessions.enter(session));
        if matches!(busy, Some(None)) {
            return lease.give_back(core, Some(NO_ROOM), true).await;
        }
        let entered =
            core.running.enter(Arc::clone(&self.instance), self.execution_id, self.id, lease.lost().clone());
        let context = self.context(&lease, orchestration).await;
        let since = Stopwatch::start();
        let outcome = self.call(handler, context, input, &lease).await;
        drop((entered, busy));
        observe::activity(core, &self.report(&outcome), since.elapsed());
        core.retries.forget(&self.instance, self.execution_id, self.id);
        match outcome {
            Outcome::Returned(result) => {
                let acknowledged = async move {
                    self.acknowledge(lease, result).await;
                };
                hand_off(core, Works.name(), Box::pin(acknowledged)).await;
            }
            // Whoever took the lease or deleted the row has decided; there is nothing to acknowledge (C4).
            Outcome::Cancelled => lease.settle(),
        }
    }

    fn report<'b>(&'b self, outcome: &'b Outcome) -> observe::Activity<'b> {
        observe::Activity {
            instance: &self.instance,
            execution_id: self.execution_id,
            id: self.id,
            name: &self.name,
            tag: self.tag.as_deref(),
            attempt: self.attempt_count,
            attempts_before: self.core.retries.before(&self.instance, self.execution_id, self.id),
            result: match outcome {
                Outcome::Returned(result) => Some(result),
                Outcome::Cancelled => None,
            },
        }
    }

    fn poisoned(&self, cause: Option<String>) -> ErrorDetails {
        ErrorDetails::Poison {
            attempt_count: self.attempt_count,
            max_attempts: self.core.options.max_attempts,
            message_type: PoisonMessageType::Activity {
                instance: self.instance.to_string(),
                execution_id: self.execution_id,
                activity_name: self.name.clone(),
                activity_id: self.id,
            },
            message: cause.map_or_else(String::new, |cause| ErrorDetails::message_with_cause(&cause, "")),
        }
    }

    async fn context(&self, lease: &Lease, orchestration: Option<(String, String)>) -> ActivityContext {
        let (orchestration_name, orchestration_version) = match orchestration {
            Some(known) => known,
            None => descriptor(&self.core, &self.instance).await,
        };
        let identity = ActivityIdentity {
            instance_id: self.instance.to_string(),
            execution_id: self.execution_id,
            orchestration_name,
            orchestration_version,
            activity_name: self.name.clone(),
            activity_id: self.id,
            worker_id: self.core.worker_id(self.slot),
            session_id: self.session_id.clone(),
            tag: self.tag.clone(),
            attempt: self.attempt_count,
        };
        let store = Arc::clone(&self.core.store);
        ActivityContext::new(identity, lease.lost().child_token(), store, Arc::clone(lease.deadline_ms()))
            .with_settings(self.core.options.codec, Arc::clone(&self.core.limits))
    }

    /// Runs the handler in a task of its own: a panic ends that, and an abort cannot be refused.
    async fn call(
        &self,
        handler: Arc<dyn ActivityHandler>,
        context: ActivityContext,
        input: String,
        lease: &Lease,
    ) -> Outcome {
        let span = tracing::debug_span!(
            target: "duroxide::runtime",
            "activity",
            instance_id = %self.instance,
            execution_id = self.execution_id,
            orchestration_name = context.orchestration_name(),
            activity_name = %self.name,
            activity_id = self.id,
            attempt = self.attempt_count
        );
        let body = async move { handler.invoke(context, input).await }.instrument(span);
        let mut task = AbortOnDrop(self.core.slots.spawn(self.core.paced(body)));
        let joined = tokio::select! {
            biased;
            joined = &mut task.0 => joined,
            () = lease.lost().cancelled() => {
                self.wind_down(task).await;
                return Outcome::Cancelled;
            }
        };
        if lease.lost().is_cancelled() {
            return Outcome::Cancelled;
        }
        Outcome::Returned(match joined {
            Ok(Ok(result)) => self.checked("result", result).map_err(failed),
            Ok(Err(error)) => Err(failed(self.checked("error", error).unwrap_or_else(|too_large| too_large))),
            Err(panic) => {
                let text = self.checked("panic", panic.to_string());
                Err(failed(text.unwrap_or_else(|too_large| too_large)))
            }
        })
    }

    /// What the handler gave back, or why that is too much.
    fn checked(&self, what: &str, text: String) -> Result<String, String> {
        let (size, limit) = (text.len(), self.core.limits.payload_bytes);
        if size <= limit {
            return Ok(text);
        }
        tracing::warn!(target: "duroxide::runtime", instance_id = %self.instance, activity_name = %self.name, what, size, limit, "an activity gave back more than the limit");
        Err(format!(
            "{what} of activity '{}' of instance '{}' has {size} bytes, the limit is {limit}: store it elsewhere and \
             return a reference, or raise limits.payload_bytes",
            self.name, self.instance
        ))
    }

    /// The handler knows that nobody wants its result; it gets time to clean up.
    async fn wind_down(&self, mut task: AbortOnDrop) {
        let grace = self.core.options.activity_cancellation_grace_period;
        if tokio::time::timeout(grace, &mut task.0).await.is_err() {
            tracing::info!(target: "duroxide::runtime", instance_id = %self.instance, activity_name = %self.name, "a cancelled activity did not end in its grace period and is aborted");
        }
    }

    /// The turn that follows from the outcome, if it can be run before the store knows of that. Only at the first delivery:
    /// a turn that kills its process is then run by a dispatcher, which counts how often.
    async fn run_ahead<'b>(&'b self, lease: &Lease, completion: &WorkItem) -> Option<ahead::Ahead<'b>> {
        let (now_ms, since) = self.fetched_at.as_ref().filter(|_| self.attempt_count == 1)?;
        let elapsed = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let now_ms = now_ms.saturating_add(elapsed);
        ahead::run(&self.core, lease, &self.instance, completion, now_ms, self.slot).await
    }

    /// Whether the outcome was accepted.
    async fn acknowledge(&self, lease: Lease, result: Result<String, ErrorDetails>) -> bool {
        let (instance, execution_id, id) = (self.instance.to_string(), self.execution_id, self.id);
        let completion = match result {
            Ok(result) => WorkItem::ActivityCompleted { instance, execution_id, id, result },
            Err(details) => WorkItem::ActivityFailed { instance, execution_id, id, details },
        };
        let core = &self.core;
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
                        (Completion::WithTurn { at_ms }, Some(ahead)) => ahead.committed(at_ms),
                        (_, ahead) => {
                            if let Some(ahead) = ahead {
                                ahead.queued();
                            }
                            core.turns_waiting.notify_waiters();
                        }
                    }
                    lease.settle();
                    return true;
                }
                Err(error) if error.is_retryable() && !lease.lost().is_cancelled() => {
                    failures += 1;
                    core.metrics.record_commit_retry("activity");
                    let entropy = core.options.entropy.as_ref();
                    let pause = backoff(Duration::from_millis(10), Duration::from_secs(1), failures, entropy);
                    tokio::select! {
                        biased;
                        () = lease.lost().cancelled() => {}
                        () = tokio::time::sleep(pause) => {}
                    }
                }
                Err(error) => {
                    tracing::warn!(target: "duroxide::runtime::worker", instance_id = %self.instance, activity_name = %self.name, %error, "the outcome of an activity was not accepted; if it is still wanted, it runs again");
                    core.metrics.record_activity_infra_error();
                    lease.give_back(core, Some(NO_ROOM), true).await;
                    return false;
                }
            }
        }
    }
}

enum Outcome {
    Returned(Result<String, ErrorDetails>),
    Cancelled,
}

/// A task that does not outlive whoever waits for it.
struct AbortOnDrop(tokio::task::JoinHandle<Result<String, String>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn failed(message: String) -> ErrorDetails {
    ErrorDetails::Application { kind: AppErrorKind::ActivityFailed, message, retryable: false }
}

/// Who scheduled the activity, for stores that do not say it with the work.
async fn descriptor(core: &Core, instance: &str) -> (String, String) {
    let history = core.store.read(instance).await.unwrap_or_default();
    let started = history.into_iter().rev().find_map(|event| match event.kind {
        EventKind::OrchestrationStarted { name, version, .. } => Some((name, version)),
        _ => None,
    });
    started.unwrap_or_else(|| ("unknown".to_string(), "unknown".to_string()))
}

#[cfg(test)]
mod tests;
