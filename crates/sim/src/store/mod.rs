//! The store of one node or client. Every method of the provider passes [`Shared::call`], which injects faults. The store records
//! each performed call for the invariants.

mod commits;
mod fused;
mod operator;
mod record;
mod sabotage;
mod starts;

use crate::bug::Bug;
use crate::call::Caller;
use crate::fault::Fault;
use crate::performed::Turn;
use crate::shared::Shared;
use async_trait::async_trait;
use outlast_model::{Event, HoldKind, SystemStats, WorkItem};
use outlast_provider::{
    BoundedTurn, Completion, DispatcherCapabilityFilter, EagerStart, ExecutionMetadata, FetchedTurn,
    FetchedWork, FusedCompletion, HistoryBound, Hold, HoldOutcome, InstanceOutcome, InstanceWatch, Interest,
    LeasedOutcome, LoadedTurn, OrchestrationItem, Provider, ProviderAdmin, ProviderError,
    ScheduledActivityIdentifier, SessionFetchConfig, StartOutcome, StartRequest, TagFilter, TurnAhead,
    TurnCommit, TurnRequest, WorkRequest, forward_provider,
};
use record::{kinds, short};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The store of one node or client.
pub(crate) struct FaultyStore {
    shared: Arc<Shared>,
    caller: Caller,
    /// The store object of its process.
    store: Arc<dyn Provider>,
    /// Whether its node is of the older deployment.
    is_old_build: bool,
}

impl FaultyStore {
    pub(crate) fn for_node(
        shared: &Arc<Shared>,
        node: usize,
        store: Arc<dyn Provider>,
        is_old_build: bool,
    ) -> Arc<Self> {
        let caller = Caller { name: format!("node{node}"), node: Some(node) };
        Arc::new(Self { shared: Arc::clone(shared), caller, store, is_old_build })
    }

    pub(crate) fn for_client(shared: &Arc<Shared>) -> Arc<Self> {
        let caller = Caller { name: "client".to_string(), node: None };
        let store = shared.backend.outside();
        Arc::new(Self { shared: Arc::clone(shared), caller, store, is_old_build: false })
    }

    fn inner(&self) -> &dyn Provider {
        self.store.as_ref()
    }
}

#[async_trait]
impl Provider for FaultyStore {
    forward_provider!(
        Provider,
        |this| this.inner(),
        except(
            as_management_capability,
            fetch_orchestration_item,
            fetch_turn,
            load_turn,
            load_turn_within,
            ack_orchestration_item,
            commit_turn,
            abandon_orchestration_item,
            read,
            read_with_execution,
            append_with_execution,
            enqueue_for_worker,
            fetch_work_item,
            fetch_work_items,
            ack_work_item,
            complete_with_turn,
            complete_all_with_turn,
            renew_work_item_lock,
            renew_session_lock,
            cleanup_orphaned_sessions,
            abandon_work_item,
            abandon_work_noted,
            hold_turn,
            renew_orchestration_item_lock,
            enqueue_for_orchestrator,
            enqueue_within,
            start_orchestration,
            start_with_turn,
            get_custom_status,
            get_kv_value,
            get_kv_all_values,
            get_instance_stats,
            read_outcome,
            watch_instance
        )
    );

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        let request = TurnRequest { lock_timeout, poll_timeout, filter, with_history: true };
        let fetched = self.fetch_turn(request).await?;
        Ok(fetched.map(|turn| (turn.item, turn.lock_token, turn.attempt_count)))
    }

    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Result<Option<FetchedTurn>, ProviderError> {
        let call_spec = self.begin_call("fetch_turn", "");
        let request =
            TurnRequest { lock_timeout: self.lease(request.lock_timeout, call_spec.fault), ..request };
        let call = async {
            let disturbances_before = self.disturbances();
            let fetched = self.inner().fetch_turn(request).await?;
            if let Some(turn) = &fetched {
                let (item, attempts) = (&turn.item, turn.attempt_count);
                let after_hold =
                    self.shared.performed().delivered_after_hold(&item.instance, attempts, &item.messages);
                // An instance may be held while a stalled node waits for the answer.
                if self.disturbances() == disturbances_before {
                    self.shared.require(self.must_not_be_held(&item.instance).await);
                }
                // A fetch that fails after its commit counts a delivery that is not recorded here.
                if !self.shared.backend.may_hide_commits() {
                    self.shared.require(after_hold);
                }
                let subject = format!("'{}'", turn.item.instance);
                self.record_lease(
                    &turn.lock_token,
                    subject,
                    request.lock_timeout,
                    turn.attempt_count,
                    disturbances_before,
                );
                let seen = Turn {
                    instance: turn.item.instance.clone(),
                    execution_id: turn.item.execution_id,
                    messages: turn.item.messages.clone(),
                    now_ms: turn.now_ms.unwrap_or_default(),
                    attempts: turn.attempt_count,
                };
                self.shared.performed().turns.insert(turn.lock_token.clone(), seen);
            }
            Ok(fetched)
        };
        let show = |fetched: &Option<FetchedTurn>| {
            let turn = fetched.as_ref()?;
            let (item, token) = (&turn.item, short(&turn.lock_token));
            let (instance, execution, attempt) = (&item.instance, item.execution_id, turn.attempt_count);
            let (at, messages) = (turn.last_event_id.unwrap_or_default(), kinds(&item.messages));
            Some(format!("{instance}/{execution} at {at} #{attempt} [{messages}] {token}"))
        };
        self.shared.call(&self.caller, call_spec, show, call).await
    }

    async fn load_turn(&self, instance: &str, execution_id: u64) -> Result<LoadedTurn, ProviderError> {
        let call = async {
            let mut loaded = self.inner().load_turn(instance, execution_id).await?;
            sabotage::load(&self.shared, &mut loaded);
            Ok(loaded)
        };
        self.read_call("load_turn", &format!("{instance}/{execution_id}"), call).await
    }

    async fn load_turn_within(
        &self,
        instance: &str,
        execution_id: u64,
        bound: HistoryBound,
    ) -> Result<BoundedTurn, ProviderError> {
        let call = async {
            let mut found = self.inner().load_turn_within(instance, execution_id, bound).await?;
            if let BoundedTurn::Whole(loaded) = &mut found {
                sabotage::load(&self.shared, loaded);
            }
            Ok(found)
        };
        self.read_call("load_turn", &format!("{instance}/{execution_id}"), call).await
    }

    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        history_delta: Vec<Event>,
        worker_items: Vec<WorkItem>,
        orchestrator_items: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        let commit = TurnCommit {
            execution_id,
            history_delta,
            worker_items,
            orchestrator_items,
            metadata,
            cancelled_activities,
        };
        self.commit(lock_token, commit).await.map(drop)
    }

    async fn commit_turn(&self, lock_token: &str, commit: TurnCommit) -> Result<Option<u64>, ProviderError> {
        self.commit(lock_token, commit).await
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let detail = format!("{} after {delay:?}, free: {ignore_attempt}", short(lock_token));
        let call = async {
            let turn = self.shared.performed().turns.get(lock_token).filter(|_| delay.is_some()).cloned();
            self.shared.performed().delayed.extend(turn.map(|turn| turn.instance));
            let call = self.inner().abandon_orchestration_item(lock_token, delay, ignore_attempt);
            self.under_lease(lock_token, call).await?;
            self.abandoned(lock_token);
            Ok(())
        };
        self.call(self.begin_call("abandon_turn", detail), call).await
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.read_call("read", instance, self.inner().read(instance)).await
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.read_call("read", instance, self.inner().read_with_execution(instance, execution_id)).await
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        let call = self.inner().append_with_execution(instance, execution_id, new_events);
        self.call(self.begin_call("append", instance), call).await
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        let detail = item.target_instance().to_string();
        self.call(self.begin_call("enqueue_work", detail), self.inner().enqueue_for_worker(item)).await
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        let request = WorkRequest { max_items: 1, lock_timeout, poll_timeout, session, tag_filter };
        let fetched = self.fetch_work_items(request).await?;
        Ok(fetched.into_iter().next().map(|work| (work.item, work.lock_token, work.attempt_count)))
    }

    async fn fetch_work_items(&self, request: WorkRequest<'_>) -> Result<Vec<FetchedWork>, ProviderError> {
        let call_spec = self.begin_call("fetch_work", "");
        let request =
            WorkRequest { lock_timeout: self.lease(request.lock_timeout, call_spec.fault), ..request };
        let call = async {
            let disturbances_before = self.disturbances();
            let fetched = self.inner().fetch_work_items(request).await?;
            for work in &fetched {
                let WorkItem::ActivityExecute { instance, execution_id, id, .. } = &work.item else {
                    continue;
                };
                let key = (instance.clone(), *execution_id, *id);
                let notes = work.notes.clone().unwrap_or_default();
                let reported = self.shared.performed().fetched(
                    &work.lock_token,
                    key,
                    notes.failures,
                    notes.last_error.as_deref(),
                );
                // Other deliveries may note failures while a stalled node waits for the answer.
                if self.disturbances() == disturbances_before {
                    self.shared.require(reported);
                }
                let subject = format!("activity {id} of '{instance}', execution {execution_id}");
                self.record_lease(
                    &work.lock_token,
                    subject,
                    request.lock_timeout,
                    work.attempt_count,
                    disturbances_before,
                );
            }
            Ok(fetched)
        };
        let show = |fetched: &Vec<FetchedWork>| {
            let work = fetched.first()?;
            let WorkItem::ActivityExecute { instance, execution_id, id, .. } = &work.item else {
                return None;
            };
            let (attempt, token) = (work.attempt_count, short(&work.lock_token));
            Some(format!("{instance}/{execution_id} activity {id} #{attempt} {token}"))
        };
        self.shared.call(&self.caller, call_spec, show, call).await
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        let what = completion.as_ref().map_or(String::new(), |item| {
            let id = match item {
                WorkItem::ActivityCompleted { id, .. } | WorkItem::ActivityFailed { id, .. } => *id,
                _ => 0,
            };
            format!("{} {} of {}", item.kind_name(), id, item.target_instance())
        });
        let call_spec = self.begin_call("ack_work", format!("{} {what}", short(token)));
        let fault = call_spec.fault;
        let call = async {
            self.under_lease(token, self.inner().ack_work_item(token, completion.clone())).await?;
            self.record_commit(token);
            if let Some(completion) = &completion {
                self.record_outcome(completion);
                if fault == Some(Fault::Duplicate) {
                    self.duplicate(completion).await;
                }
            }
            Ok(())
        };
        self.call(call_spec, call).await
    }

    async fn complete_with_turn(
        &self,
        token: &str,
        completion: WorkItem,
        turn: TurnAhead,
    ) -> Result<Completion, ProviderError> {
        self.complete(token, completion, turn).await
    }

    async fn complete_all_with_turn(
        &self,
        outcomes: Vec<LeasedOutcome>,
        turn: TurnAhead,
    ) -> Result<FusedCompletion, ProviderError> {
        self.complete_all(outcomes, turn).await
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        let call_spec = self.begin_call("renew_work", short(token));
        if call_spec.fault == Some(Fault::ErrorBefore) && self.shared.has(Bug::RenewalErrorLosesWork) {
            let _ = self.inner().ack_work_item(token, None).await;
        }
        let forgotten = self.shared.has(Bug::RenewalForgotten)
            || self.shared.has(Bug::DrainStopsRenewals) && self.shared.is_draining(&self.caller);
        let call = async {
            if !forgotten {
                self.under_lease(token, self.inner().renew_work_item_lock(token, extend_for)).await?;
                self.record_renewal(token, extend_for);
            }
            Ok(())
        };
        self.call(call_spec, call).await
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        let call = self.inner().renew_session_lock(owner_ids, extend_for, idle_timeout);
        let show = |count: &usize| Some(count.to_string()).filter(|_| *count > 0);
        self.shared.call(&self.caller, self.begin_call("renew_sessions", ""), show, call).await
    }

    async fn cleanup_orphaned_sessions(&self, idle_timeout: Duration) -> Result<usize, ProviderError> {
        let call = self.inner().cleanup_orphaned_sessions(idle_timeout);
        let show = |count: &usize| Some(count.to_string()).filter(|_| *count > 0);
        self.shared.call(&self.caller, self.begin_call("clean_sessions", ""), show, call).await
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let detail = format!("{} after {delay:?}, free: {ignore_attempt}", short(token));
        let call = async {
            self.under_lease(token, self.inner().abandon_work_item(token, delay, ignore_attempt)).await?;
            self.abandoned(token);
            Ok(())
        };
        self.call(self.begin_call("abandon_work", detail), call).await
    }

    async fn abandon_work_noted(
        &self,
        token: &str,
        delay: Option<Duration>,
        error: &str,
    ) -> Result<(), ProviderError> {
        let detail = format!("{} after {delay:?}", short(token));
        let call = async {
            let disturbances_before = self.disturbances();
            if self.shared.backend.has_tasks() {
                // A task of the store may store the note after its caller is gone.
                self.shared.performed().noted(token, error, false);
            }
            let answer = self.under_lease(token, self.inner().abandon_work_noted(token, delay, error)).await;
            // A lease that is given back again counts as given back, with or without the note.
            let is_certain = answer.is_ok()
                && !(self.shared.backend.has_tasks() && self.disturbances() != disturbances_before);
            if answer.is_ok() || self.shared.backend.may_hide_commits() {
                self.shared.performed().noted(token, error, is_certain);
            }
            answer?;
            self.abandoned(token);
            Ok(())
        };
        self.call(self.begin_call("note_work", detail), call).await
    }

    async fn hold_turn(&self, token: &str, hold: &Hold) -> Result<HoldOutcome, ProviderError> {
        let detail = format!("{} {}", short(token), hold.kind);
        let instance = self.shared.performed().turns.get(token).map(|turn| turn.instance.clone());
        let call = async {
            let outcome = self.under_lease(token, self.inner().hold_turn(token, hold)).await?;
            if outcome == HoldOutcome::Held {
                self.shared.performed().held(token);
                if hold.kind == HoldKind::Parked {
                    self.shared.tally().happened(Fault::BrokenBuild);
                    self.shared.require(self.must_be_parked(token, hold));
                }
                self.abandoned(token);
            }
            Ok(outcome)
        };
        let show = |outcome: &HoldOutcome| Some(format!("{outcome:?}"));
        let outcome =
            self.shared.call(&self.caller, self.begin_call("hold_turn", detail), show, call).await?;
        if let Some(instance) =
            instance.filter(|_| (outcome, hold.kind) == (HoldOutcome::Held, HoldKind::Parked))
        {
            self.owes(operator::PARKED, &instance, Some((&hold.actor, &hold.reason)));
        }
        Ok(outcome)
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        let call = async {
            self.under_lease(token, self.inner().renew_orchestration_item_lock(token, extend_for)).await?;
            self.record_renewal(token, extend_for);
            Ok(())
        };
        self.call(self.begin_call("renew_turn", short(token)), call).await
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        let call = async {
            self.inner().enqueue_for_orchestrator(item.clone(), delay).await?;
            Ok(true)
        };
        self.enqueue(&item, call).await.map(drop)
    }

    async fn enqueue_within(&self, item: WorkItem, most_waiting: usize) -> Result<bool, ProviderError> {
        self.enqueue(&item, self.inner().enqueue_within(item.clone(), most_waiting)).await
    }

    async fn start_orchestration(&self, request: StartRequest) -> Result<StartOutcome, ProviderError> {
        let (start, messages) = (request.start.clone(), request.messages.clone());
        let detail = start.target_instance().to_string();
        let call = async {
            let outcome = self.inner().start_orchestration(request).await?;
            let mut performed = self.shared.performed();
            performed.enqueued(&start);
            if outcome == StartOutcome::Started {
                messages.iter().for_each(|message| performed.enqueued(message));
            }
            Ok(outcome)
        };
        let show = |outcome: &StartOutcome| Some(format!("{outcome:?}"));
        self.shared.call(&self.caller, self.begin_call("start", detail), show, call).await
    }

    async fn start_with_turn(&self, start: WorkItem, turn: TurnAhead) -> Result<EagerStart, ProviderError> {
        self.start_ahead(start, turn).await
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        self.read_call("read", instance, self.inner().get_custom_status(instance, last_seen_version)).await
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        self.read_call("read", instance, self.inner().get_kv_value(instance, key)).await
    }

    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        self.read_call("read", instance, self.inner().get_kv_all_values(instance)).await
    }

    async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        self.read_call("read", instance, self.inner().get_instance_stats(instance)).await
    }

    async fn read_outcome(&self, instance: &str) -> Result<Option<InstanceOutcome>, ProviderError> {
        self.read_call("read_outcome", instance, self.inner().read_outcome(instance)).await
    }

    fn watch_instance(&self, instance: &str, interest: Interest) -> Option<InstanceWatch> {
        if self.shared.plan.loses_wake_ups && self.shared.rng().per_mille(300) {
            self.shared.tally().happened(Fault::LostWakeUp);
            return Some(Box::pin(std::future::pending()));
        }
        self.inner().watch_instance(instance, interest)
    }
}
