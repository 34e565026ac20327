//! The store as one node or client sees it: every call of the contract, the additive ones too, passes [`Shared::call`],
//! where faults happen. What the store took is written down for the invariants.

use crate::bug::Bug;
use crate::call::Caller;
use crate::check::replay;
use crate::shared::Shared;
use crate::witness::Turn;
use async_trait::async_trait;
use outlast_model::{Event, EventKind, SystemStats, WorkItem};
use outlast_provider::{
    DispatcherCapabilityFilter, ExecutionMetadata, FetchedTurn, FetchedWork, InstanceOutcome, InstanceWatch,
    Interest, LoadedTurn, OrchestrationItem, Provider, ProviderAdmin, ProviderError,
    ScheduledActivityIdentifier, SessionFetchConfig, StartOutcome, StartRequest, TagFilter, TurnRequest,
    WorkRequest, saturating_ms,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct FaultyStore {
    shared: Arc<Shared>,
    caller: Caller,
}

impl FaultyStore {
    pub(crate) fn for_node(shared: &Arc<Shared>, node: usize) -> Arc<Self> {
        let caller = Caller { name: format!("node{node}"), node: Some(node) };
        Arc::new(Self { shared: Arc::clone(shared), caller })
    }

    pub(crate) fn for_client(shared: &Arc<Shared>) -> Arc<Self> {
        let caller = Caller { name: "client".to_string(), node: None };
        Arc::new(Self { shared: Arc::clone(shared), caller })
    }

    fn inner(&self) -> &dyn Provider {
        self.shared.store.as_ref()
    }

    /// A call whose success is its only answer.
    async fn call(
        &self,
        op: &'static str,
        detail: String,
        call: impl Future<Output = Result<(), ProviderError>>,
    ) -> Result<(), ProviderError> {
        self.shared.call(&self.caller, op, detail, |()| Some("ok".to_string()), call).await
    }

    /// A call that changes nothing.
    async fn read_call<T>(
        &self,
        op: &'static str,
        detail: &str,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        self.shared.call(&self.caller, op, detail.to_string(), |_| Some("read".to_string()), call).await
    }

    /// Something was leased. A second delivery means that the lease of the first was lost.
    fn leased(&self, token: &str, subject: String, lock_timeout: Duration, attempts: u32) {
        self.shared.tally().leases_lost += u64::from(attempts > 1);
        let now = self.shared.now_ms();
        let granted = self.shared.witness().leases.granted(token, subject, now, saturating_ms(lock_timeout));
        self.must(granted);
    }

    fn renewed(&self, token: &str, extend_for: Duration) {
        let now = self.shared.now_ms();
        let renewed = self.shared.witness().leases.renewed(token, now, saturating_ms(extend_for));
        self.must(renewed);
    }

    fn committed(&self, token: &str) {
        let now = self.shared.now_ms();
        let committed = self.shared.witness().leases.committed(token, now);
        self.must(committed);
    }

    fn given_back(&self, token: &str) {
        let mut witness = self.shared.witness();
        witness.turns.remove(token);
        witness.leases.given_back(token);
    }

    fn must(&self, hold: Result<(), String>) {
        if let Err(failure) = hold {
            self.shared.fail(failure);
        }
    }
}

/// The first part of a token is enough for people.
fn short(token: &str) -> &str {
    token.get(..11).unwrap_or(token)
}

fn kinds(items: &[WorkItem]) -> String {
    let kinds: Vec<&str> = items.iter().map(WorkItem::kind_name).collect();
    kinds.join(",")
}

#[async_trait]
impl Provider for FaultyStore {
    fn name(&self) -> &str {
        self.inner().name()
    }

    fn version(&self) -> &str {
        self.inner().version()
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
        let call = async {
            let fetched = self.inner().fetch_turn(request).await?;
            if let Some(turn) = &fetched {
                let subject = format!("'{}'", turn.item.instance);
                self.leased(&turn.lock_token, subject, request.lock_timeout, turn.attempt_count);
                let seen = Turn {
                    instance: turn.item.instance.clone(),
                    execution_id: turn.item.execution_id,
                    messages: turn.item.messages.clone(),
                    now_ms: turn.now_ms.unwrap_or_default(),
                    attempts: turn.attempt_count,
                };
                self.shared.witness().turns.insert(turn.lock_token.clone(), seen);
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
        self.shared.call(&self.caller, "fetch_turn", String::new(), show, call).await
    }

    async fn load_turn(&self, instance: &str, execution_id: u64) -> Result<LoadedTurn, ProviderError> {
        let call = async {
            let mut loaded = self.inner().load_turn(instance, execution_id).await?;
            if self.shared.has(Bug::StaleRead) && loaded.history.len() > 1 {
                loaded.history.pop();
            }
            Ok(loaded)
        };
        self.read_call("load_turn", &format!("{instance}/{execution_id}"), call).await
    }

    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        history_delta: Vec<Event>,
        mut worker_items: Vec<WorkItem>,
        mut orchestrator_items: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        let status = metadata.status.as_deref().unwrap_or("");
        let detail = format!(
            "{} /{execution_id} +{} events, work {}, [{}] {status}",
            short(lock_token),
            history_delta.len(),
            worker_items.len(),
            kinds(&orchestrator_items)
        );
        let call = async {
            let turn = self.shared.witness().turns.get(lock_token).cloned();
            let mut again = None;
            if let Some(turn) = turn.filter(|_| self.shared.dice().per_mille(250)) {
                again = replay::again(&self.shared, &turn).await;
            }
            let compared = again.map(|again| {
                replay::compare(
                    &again,
                    &history_delta,
                    &worker_items,
                    &orchestrator_items,
                    &cancelled_activities,
                )
            });
            if self.shared.has(Bug::CommitForgetsWork) && self.shared.dice().per_mille(100) {
                worker_items.clear();
            }
            if self.shared.has(Bug::CommitForgetsMessages) && self.shared.dice().per_mille(100) {
                orchestrator_items.clear();
            }
            let delta = match self.shared.has(Bug::CompletionTwice) {
                true => with_a_completion_twice(history_delta),
                false => history_delta,
            };
            let written = self
                .inner()
                .ack_orchestration_item(
                    lock_token,
                    execution_id,
                    delta,
                    worker_items,
                    orchestrator_items,
                    metadata,
                    cancelled_activities,
                )
                .await;
            written?;
            self.committed(lock_token);
            let turn = self.shared.witness().turns.remove(lock_token);
            let instance = turn.map(|turn| turn.instance).unwrap_or_default();
            self.shared.tally().turns += 1;
            if let Some(compared) = compared {
                self.shared.tally().turns_compared += 1;
                if let Err(difference) = compared {
                    self.shared.fail(format!(
                        "I9: a turn of '{instance}', execution {execution_id}, run again from a cold start decides \
                         otherwise: {difference}"
                    ));
                }
            }
            Ok(())
        };
        self.call("ack_turn", detail, call).await
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let detail = format!("{} after {delay:?}, free: {ignore_attempt}", short(lock_token));
        let call = async {
            self.inner().abandon_orchestration_item(lock_token, delay, ignore_attempt).await?;
            self.given_back(lock_token);
            Ok(())
        };
        self.call("abandon_turn", detail, call).await
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
        self.call("append", instance.to_string(), call).await
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        let detail = item.target_instance().to_string();
        self.call("enqueue_work", detail, self.inner().enqueue_for_worker(item)).await
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
        let call = async {
            let fetched = self.inner().fetch_work_items(request).await?;
            for work in &fetched {
                let WorkItem::ActivityExecute { instance, execution_id, id, .. } = &work.item else {
                    continue;
                };
                let subject = format!("activity {id} of '{instance}', execution {execution_id}");
                self.leased(&work.lock_token, subject, request.lock_timeout, work.attempt_count);
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
        self.shared.call(&self.caller, "fetch_work", String::new(), show, call).await
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        let what = completion.as_ref().map_or(String::new(), |item| {
            let id = match item {
                WorkItem::ActivityCompleted { id, .. } | WorkItem::ActivityFailed { id, .. } => *id,
                _ => 0,
            };
            format!("{} {} of {}", item.kind_name(), id, item.target_instance())
        });
        let call = async {
            self.inner().ack_work_item(token, completion.clone()).await?;
            self.committed(token);
            if let Some(completion) = &completion {
                let completed = self.shared.witness().completed(completion);
                self.must(completed);
            }
            Ok(())
        };
        self.call("ack_work", format!("{} {what}", short(token)), call).await
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        let call = async {
            if !self.shared.has(Bug::RenewalForgotten) {
                self.inner().renew_work_item_lock(token, extend_for).await?;
                self.renewed(token, extend_for);
            }
            Ok(())
        };
        self.call("renew_work", short(token).to_string(), call).await
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        let call = self.inner().renew_session_lock(owner_ids, extend_for, idle_timeout);
        let show = |count: &usize| Some(count.to_string()).filter(|_| *count > 0);
        self.shared.call(&self.caller, "renew_sessions", String::new(), show, call).await
    }

    async fn cleanup_orphaned_sessions(&self, idle_timeout: Duration) -> Result<usize, ProviderError> {
        let call = self.inner().cleanup_orphaned_sessions(idle_timeout);
        let show = |count: &usize| Some(count.to_string()).filter(|_| *count > 0);
        self.shared.call(&self.caller, "clean_sessions", String::new(), show, call).await
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let detail = format!("{} after {delay:?}, free: {ignore_attempt}", short(token));
        let call = async {
            self.inner().abandon_work_item(token, delay, ignore_attempt).await?;
            self.given_back(token);
            Ok(())
        };
        self.call("abandon_work", detail, call).await
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        let call = async {
            self.inner().renew_orchestration_item_lock(token, extend_for).await?;
            self.renewed(token, extend_for);
            Ok(())
        };
        self.call("renew_turn", short(token).to_string(), call).await
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        let detail = format!("{} for {}", item.kind_name(), item.target_instance());
        let call = async {
            let lies = self.shared.has(Bug::AcknowledgedNotDurable) && self.shared.dice().per_mille(100);
            if !lies {
                self.inner().enqueue_for_orchestrator(item.clone(), delay).await?;
            }
            if self.shared.has(Bug::MessageTwice) && self.shared.dice().per_mille(100) {
                self.inner().enqueue_for_orchestrator(item.clone(), delay).await?;
            }
            self.shared.witness().enqueued(&item);
            Ok(())
        };
        self.call("enqueue", detail, call).await
    }

    async fn start_orchestration(&self, request: StartRequest) -> Result<StartOutcome, ProviderError> {
        let (start, messages) = (request.start.clone(), request.messages.clone());
        let detail = start.target_instance().to_string();
        let call = async {
            let outcome = self.inner().start_orchestration(request).await?;
            let mut witness = self.shared.witness();
            witness.enqueued(&start);
            if outcome == StartOutcome::Started {
                messages.iter().for_each(|message| witness.enqueued(message));
            }
            Ok(outcome)
        };
        let show = |outcome: &StartOutcome| Some(format!("{outcome:?}"));
        self.shared.call(&self.caller, "start", detail, show, call).await
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        self.inner().as_management_capability()
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
        if self.shared.plan.loses_wake_ups && self.shared.dice().per_mille(300) {
            self.shared.tally().happened(crate::plan::Fault::LostWakeUp);
            return Some(Box::pin(std::future::pending()));
        }
        self.inner().watch_instance(instance, interest)
    }
}

/// A defect: the first completion is recorded a second time, under the next id.
fn with_a_completion_twice(mut delta: Vec<Event>) -> Vec<Event> {
    let last_id = delta.last().map_or(0, |event| event.event_id);
    let completed = delta.iter().find(|event| matches!(event.kind, EventKind::ActivityCompleted { .. }));
    if let Some(event) = completed.cloned() {
        delta.push(Event { event_id: last_id + 1, ..event });
    }
    delta
}
