//! A runtime without concurrency: one fetch, one turn of the engine, one commit at a time.

use super::IMMEDIATE;
use crate::ProviderFactory;
use crate::support::*;
use outlast_engine::{
    Admission, Admitted, Execution, KvValue, Opening, ParentClosePolicy, Past, Poison, Setup, TurnInput,
    admit,
};
use outlast_provider::model::limits::Limits;
use outlast_provider::model::{ErrorDetails, Event, PoisonMessageType, json};
use outlast_provider::{DispatcherCapabilityFilter, OrchestrationItem, Provider, TurnCommit};
use outlast_runtime::OrchestrationHandler;
use outlast_runtime::registry::OrchestrationRegistry;
use semver::Version;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One process that runs orchestrations. A new node simulates a restart: it replays the decisions of its predecessor.
pub(super) struct Node<'a> {
    factory: &'a dyn ProviderFactory,
    provider: &'a dyn Provider,
    orchestrations: OrchestrationRegistry,
    supports: DispatcherCapabilityFilter,
    stamp: String,
    most_deliveries: u32,
    /// Executions that started on this node and have not been replayed.
    live: Mutex<BTreeMap<(String, u64), Execution>>,
}

/// A turn under its lease.
pub(super) struct Held {
    pub(super) item: OrchestrationItem,
    pub(super) attempt: u32,
    token: String,
    /// The time of the turn.
    now_ms: u64,
}

/// The commit of a turn, or nothing if it was given back.
pub(super) type Done = Option<TurnCommit>;

impl<'a> Node<'a> {
    pub(super) fn new(
        factory: &'a dyn ProviderFactory,
        provider: &'a dyn Provider,
        orchestrations: &OrchestrationRegistry,
    ) -> Self {
        Self {
            factory,
            provider,
            orchestrations: orchestrations.clone(),
            supports: DispatcherCapabilityFilter::default_for_current_build(),
            stamp: IMMEDIATE.to_string(),
            most_deliveries: u32::MAX,
            live: Mutex::default(),
        }
    }

    /// A node of this version of the contract: executions that start on it have this stamp.
    pub(super) fn stamping(self, stamp: &str) -> Self {
        Self { stamp: stamp.to_string(), ..self }
    }

    /// A node that poisons messages that were delivered more often than this.
    pub(super) fn giving_up_after(self, most_deliveries: u32) -> Self {
        Self { most_deliveries, ..self }
    }

    /// A node that runs only executions of these versions.
    pub(super) fn supporting(self, min: Version, max: Version) -> Self {
        Self { supports: supporting([(min, max)]), ..self }
    }

    /// The delay with which this node gives back messages that it cannot run.
    pub(super) fn backoff(&self) -> Duration {
        self.factory.lock_timeout()
    }

    /// Fetches a turn, if there is one.
    pub(super) async fn try_fetch(&self) -> Option<Held> {
        let fetched = self.provider.fetch_orchestration_item(LONG, NO_WAIT, Some(&self.supports)).await;
        let (item, token, attempt) = fetched.expect("fetch_orchestration_item succeeds")?;
        assert_eq!(item.history_error, None, "the history of '{}' decodes", item.instance);
        // The clock of a node may differ from the store's; events keep the node's time.
        let now_ms = self.factory.now_ms().saturating_sub(1_500);
        Some(Held { item, attempt, token, now_ms })
    }

    /// Fetches a turn, which must be of this instance.
    pub(super) async fn fetch(&self, instance: &str) -> Held {
        let held = self.try_fetch().await.unwrap_or_else(|| panic!("a turn of '{instance}' is ready"));
        assert_eq!(held.item.instance, instance, "the instance that the test waits for");
        held
    }

    /// Fetches and commits a turn of this instance, which must be ready.
    pub(super) async fn turn(&self, instance: &str) -> Done {
        let held = self.fetch(instance).await;
        self.run(held).await
    }

    /// A whole turn of this instance that must be committed.
    pub(super) async fn commit(&self, instance: &str) -> TurnCommit {
        self.turn(instance).await.unwrap_or_else(|| panic!("the turn of '{instance}' goes on"))
    }

    /// Runs a turn and commits it or gives it back.
    pub(super) async fn run(&self, held: Held) -> Done {
        let Some((commit, before)) = self.decide(&held) else {
            let given = self.provider.abandon_orchestration_item(&held.token, Some(self.backoff()), false);
            given.await.expect("a turn under a live lease can be given back");
            return None;
        };
        self.write(&held, commit.clone()).await;
        self.read_back(&held.item.instance, &commit, before).await;
        Some(commit)
    }

    /// The commit of a turn, with the events before it; `None` if this node cannot run it.
    fn decide(&self, held: &Held) -> Option<(TurnCommit, Vec<Event>)> {
        let item = &held.item;
        let past = Past::of_history(&item.history);
        match admit(&item.instance, item.execution_id, &past, item.messages.clone()) {
            Admission::Nameless => {
                panic!("a batch for a missing instance is not delivered: {:?}", item.messages)
            }
            Admission::SuccessorMissing(_) => None,
            Admission::Ended(orchestrator_items) => {
                let execution_id = item.execution_id;
                Some((
                    TurnCommit { execution_id, orchestrator_items, ..TurnCommit::default() },
                    item.history.clone(),
                ))
            }
            Admission::Run(admitted) => {
                let before = if admitted.is_new { Vec::new() } else { item.history.clone() };
                let commit = if held.attempt > self.most_deliveries {
                    self.poison(held, *admitted, before.clone())
                } else {
                    self.advance(held, &admitted, &before)?
                };
                Some((commit, before))
            }
        }
    }

    /// Runs the code by replay and, if the execution is still live on this node, also live. Both must make the same decisions.
    fn advance(&self, held: &Held, admitted: &Admitted, before: &[Event]) -> Option<TurnCommit> {
        let item = &held.item;
        let (version, handler) = self.handler(&admitted.opening)?;
        let opening = Opening { version: Some(version.to_string()), ..admitted.opening.clone() };
        let setup = self.setup(item, admitted.execution_id, opening, before);
        let call = |context, input| -> outlast_engine::Code {
            Box::pin(async move { handler.invoke(context, input).await })
        };
        let mut replayed = Execution::new(setup, call).expect("calling an orchestration runs none of it");
        let decided = step(&mut replayed, held.now_ms, admitted, before.to_vec());
        let key = (item.instance.clone(), admitted.execution_id);
        let mut live = self.live.lock().expect("no code under this lock panics");
        match live.get_mut(&key) {
            Some(_) if admitted.is_new => panic!("execution {} of '{}' begins twice", key.1, key.0),
            Some(live) => {
                assert_eq!(step(live, held.now_ms, admitted, Vec::new()), decided, "live and replayed turns");
            }
            None if admitted.is_new => {
                live.insert(key, replayed);
            }
            None => {}
        }
        Some(decided)
    }

    fn poison(&self, held: &Held, admitted: Admitted, history: Vec<Event>) -> TurnCommit {
        let (instance, execution_id) = (held.item.instance.clone(), admitted.execution_id);
        let details = ErrorDetails::Poison {
            attempt_count: held.attempt,
            max_attempts: self.most_deliveries,
            message_type: PoisonMessageType::Orchestration { instance, execution_id },
            message: "delivered too often".to_string(),
        };
        let setup = self.setup(&held.item, execution_id, admitted.opening, &history);
        let (notices, now_ms) = (admitted.notices, held.now_ms);
        let parent_close = ParentClosePolicy::default();
        outlast_engine::poison(Poison { setup, history, details, notices, now_ms, parent_close }).commit
    }

    /// The stored stamp, or this node's own if no event is stored.
    fn setup(
        &self,
        item: &OrchestrationItem,
        execution_id: u64,
        opening: Opening,
        before: &[Event],
    ) -> Setup {
        let stored = before.first().map(|event| event.duroxide_version.clone());
        let value = |entry: &outlast_provider::KvEntry| KvValue {
            value: entry.value.clone(),
            updated_at_ms: entry.last_updated_at_ms,
        };
        Setup {
            instance: item.instance.clone(),
            execution_id,
            opening,
            stamp: stored.unwrap_or_else(|| self.stamp.clone()),
            kv: item.kv_snapshot.iter().map(|(key, entry)| (key.clone(), value(entry))).collect(),
            limits: Arc::new(Limits::default()),
        }
    }

    fn handler(&self, opening: &Opening) -> Option<(Version, Arc<dyn OrchestrationHandler>)> {
        let Some(version) = &opening.version else {
            return self.orchestrations.resolve_handler(&opening.name);
        };
        let version = Version::parse(version).expect("the version that was registered or asked for");
        let handler = self.orchestrations.resolve_handler_exact(&opening.name, &version)?;
        Some((version, handler))
    }

    async fn write(&self, held: &Held, commit: TurnCommit) {
        let written = self.provider.ack_orchestration_item(
            &held.token,
            commit.execution_id,
            commit.history_delta,
            commit.worker_items,
            commit.orchestrator_items,
            commit.metadata,
            commit.cancelled_activities,
        );
        written.await.expect("a turn under a live lease commits");
    }

    /// Checks that the stored events are byte for byte those that were committed.
    async fn read_back(&self, instance: &str, commit: &TurnCommit, before: Vec<Event>) {
        let expected = texts(&[before, commit.history_delta.clone()].concat());
        let stored = self.provider.read_with_execution(instance, commit.execution_id).await;
        let stored = stored.expect("read_with_execution succeeds");
        assert_eq!(texts(&stored), expected, "execution {} of '{instance}'", commit.execution_id);
    }
}

fn step(execution: &mut Execution, now_ms: u64, admitted: &Admitted, history: Vec<Event>) -> TurnCommit {
    let input = TurnInput {
        history,
        messages: admitted.messages.clone(),
        notices: admitted.notices.clone(),
        now_ms,
        random: &mut || 0,
        parent_close: ParentClosePolicy::default(),
    };
    outlast_engine::run(execution, input).commit
}

fn texts(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| json::encode_event(event).expect("an event can be encoded")).collect()
}
