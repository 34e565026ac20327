//! A cluster: a store, the runtimes on it and a client.

use super::LONGEST_WAIT;
use super::crash::{Crash, CrashHook};
use super::hooked::Hooked;
use super::store::{Kind, TestStore};
use outlast::providers::Provider;
use outlast::runtime::registry::{ActivityRegistry, ActivityRegistryBuilder};
use outlast::runtime::{Module, Runtime};
use outlast::{
    Client, OrchestrationRegistry, OrchestrationRegistryBuilder, OrchestrationStatus, RuntimeOptions,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// The registries and options of one runtime.
#[derive(Clone)]
pub(crate) struct Node {
    activities: ActivityRegistry,
    orchestrations: OrchestrationRegistry,
    tune: Arc<dyn Fn(&mut RuntimeOptions) + Send + Sync>,
}

impl Node {
    pub(crate) fn new(
        orchestrations: OrchestrationRegistryBuilder,
        activities: ActivityRegistryBuilder,
    ) -> Self {
        Self {
            activities: activities.build_result().unwrap(),
            orchestrations: orchestrations.build_result().unwrap(),
            tune: Arc::new(|_| ()),
        }
    }

    /// The typed functions of a module.
    pub(crate) fn of(module: Module) -> Self {
        let (activities, orchestrations) = module.build().unwrap();
        Self { activities, orchestrations, tune: Arc::new(|_| ()) }
    }

    /// Changes the options.
    pub(crate) fn with(mut self, tune: impl Fn(&mut RuntimeOptions) + Send + Sync + 'static) -> Self {
        self.tune = Arc::new(tune);
        self
    }
}

type Started = (Node, Arc<Runtime>);

pub(crate) struct Cluster {
    test_store: TestStore,
    pub(crate) client: Client,
    /// The running runtimes, each with its node to start it again; `None` for a runtime that was stopped.
    nodes: Mutex<Vec<Option<Started>>>,
    crash_hook: Option<Arc<CrashHook>>,
    /// Whether leases are short, so that crash tests do not wait long for them.
    has_short_leases: bool,
}

impl Cluster {
    pub(crate) async fn real(kind: Kind) -> Arc<Self> {
        Self::on(TestStore::real(kind).await, None)
    }

    pub(crate) async fn paused(kind: Kind) -> Arc<Self> {
        Self::on(TestStore::paused(kind).await, None)
    }

    /// A cluster whose runtimes all crash at one point and are then restarted, under paused time if the store allows it.
    pub(crate) async fn crashing(kind: Kind, crash: Crash) -> Arc<Self> {
        let crash_hook = Arc::new(CrashHook::new(Some(crash)));
        let cluster = Self::on(TestStore::crashing(kind).await, Some(Arc::clone(&crash_hook)));
        let (restarted, crashed) = (Arc::clone(&cluster), crash_hook);
        tokio::spawn(async move {
            crashed.crash().await;
            restarted.restart_all().await;
        });
        cluster
    }

    pub(crate) fn on(test_store: TestStore, crash_hook: Option<Arc<CrashHook>>) -> Arc<Self> {
        let client = Client::new(Arc::clone(&test_store.store));
        let has_short_leases = crash_hook.is_some();
        Arc::new(Self { test_store, client, nodes: Mutex::default(), crash_hook, has_short_leases })
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.test_store.is_paused
    }

    /// The activities of a wide fan-out: more than fit into a batch of Cosmos DB.
    pub(crate) fn width(&self) -> u64 {
        if self.test_store.may_be_emulated() { 200 } else { 1_000 }
    }

    /// The longest wait. It is longer under paused time, which takes no real time.
    fn longest_wait(&self) -> Duration {
        if self.is_paused() { 60 * LONGEST_WAIT } else { LONGEST_WAIT }
    }

    pub(crate) fn store(&self) -> Arc<dyn Provider> {
        Arc::clone(&self.test_store.store)
    }

    /// The same data through another store object, as another process would have it.
    pub(crate) async fn other_process(&self) -> Arc<dyn Provider> {
        self.test_store.reopened().await
    }

    /// The schema, on PostgreSQL.
    pub(crate) fn schema(&self) -> &str {
        self.test_store.schema.as_deref().expect("a cluster on PostgreSQL")
    }

    pub(crate) fn options(&self) -> RuntimeOptions {
        let mut options =
            RuntimeOptions { clock: Arc::clone(&self.test_store.clock), ..RuntimeOptions::default() };
        if self.has_short_leases {
            options.orchestrator_lock_timeout = Duration::from_secs(1);
            options.worker_lock_timeout = Duration::from_secs(2);
            options.session_lock_timeout = Duration::from_secs(2);
        }
        options
    }

    /// Starts a runtime; returns its number.
    pub(crate) async fn start(&self, node: &Node) -> usize {
        let store = match &self.crash_hook {
            Some(crash_hook) => Hooked::around(self.store(), Arc::clone(crash_hook)),
            None => self.store(),
        };
        self.start_on(store, node).await
    }

    /// Starts a runtime on this store object.
    pub(crate) async fn start_on(&self, store: Arc<dyn Provider>, node: &Node) -> usize {
        // Locked before the start, so that a crash includes this runtime.
        let mut nodes = self.nodes.lock().await;
        nodes.push(Some((node.clone(), self.launch(store, node).await)));
        nodes.len() - 1
    }

    /// A runtime by its number.
    pub(crate) async fn runtime(&self, number: usize) -> Arc<Runtime> {
        Arc::clone(&self.nodes.lock().await[number].as_ref().unwrap().1)
    }

    async fn launch(&self, store: Arc<dyn Provider>, node: &Node) -> Arc<Runtime> {
        let mut options = self.options();
        (node.tune)(&mut options);
        let (activities, orchestrations) = (node.activities.clone(), node.orchestrations.clone());
        Runtime::start_with_options(store, activities, orchestrations, options).await
    }

    /// Crashes all runtimes and starts them again on the same data.
    pub(crate) async fn restart_all(&self) {
        let mut nodes = self.nodes.lock().await;
        for (_, runtime) in nodes.iter().flatten() {
            Arc::clone(runtime).shutdown(Some(0)).await;
        }
        let store = self.test_store.reopened().await;
        for (node, runtime) in nodes.iter_mut().flatten() {
            *runtime = self.launch(Arc::clone(&store), node).await;
        }
    }

    /// Whether the planned crash has happened.
    pub(crate) fn has_crashed(&self) -> bool {
        self.crash_hook.as_ref().is_some_and(|crash_hook| crash_hook.has_crashed())
    }

    /// Drops a runtime that has ended without a shutdown.
    pub(crate) async fn forget(&self, number: usize) {
        drop(self.nodes.lock().await[number].take());
    }

    /// Shuts one runtime down.
    pub(crate) async fn stop(&self, number: usize) {
        let stopped = self.nodes.lock().await[number].take();
        if let Some((_, runtime)) = stopped {
            runtime.shutdown(None).await;
        }
    }

    /// Shuts all runtimes down.
    pub(crate) async fn end(&self) {
        for (_, runtime) in self.nodes.lock().await.drain(..).flatten() {
            runtime.shutdown(None).await;
        }
    }

    /// Waits until an instance has ended.
    pub(crate) async fn ended(&self, instance: &str) -> OrchestrationStatus {
        let ended = self.client.wait_for_orchestration(instance, self.longest_wait()).await;
        match ended {
            Ok(status) => status,
            Err(error) => panic!("{instance}: {error}\n{}", self.history(instance).await.join("\n")),
        }
    }

    /// The output of an instance, which must complete.
    pub(crate) async fn output(&self, instance: &str) -> String {
        match self.ended(instance).await {
            OrchestrationStatus::Completed { output, .. } => output,
            other => panic!("{instance}: {other:?}\n{}", self.history(instance).await.join("\n")),
        }
    }

    /// The failure of an instance, which must fail, as text.
    pub(crate) async fn failure(&self, instance: &str) -> String {
        match self.ended(instance).await {
            OrchestrationStatus::Failed { details, .. } => details.display_message(),
            other => panic!("{instance}: {other:?}\n{}", self.history(instance).await.join("\n")),
        }
    }

    /// The history of the newest execution, one line per event.
    pub(crate) async fn history(&self, instance: &str) -> Vec<String> {
        let events = self.test_store.store.read(instance).await.unwrap();
        events
            .iter()
            .map(|event| format!("{} {:?} {:?}", event.event_id, event.source_event_id, event.kind))
            .collect()
    }

    /// Starts an instance.
    pub(crate) async fn begin(&self, instance: &str, orchestration: &str, input: &str) {
        self.client.start_orchestration(instance, orchestration, input).await.unwrap();
    }

    /// Starts an instance and waits for its output.
    pub(crate) async fn run(&self, instance: &str, orchestration: &str, input: &str) -> String {
        self.begin(instance, orchestration, input).await;
        self.output(instance).await
    }

    /// Waits until an instance has this custom status.
    pub(crate) async fn says(&self, instance: &str, text: &str) {
        let mut seen = 0;
        loop {
            let status = self
                .client
                .wait_for_status_change(instance, seen, Duration::from_millis(20), self.longest_wait())
                .await;
            match status.unwrap() {
                OrchestrationStatus::Running { custom_status, custom_status_version } => {
                    if custom_status.as_deref() == Some(text) {
                        return;
                    }
                    seen = custom_status_version;
                }
                other => panic!("{instance} never said '{text}': {other:?}"),
            }
        }
    }
}
