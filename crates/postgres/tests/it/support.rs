//! Helpers of the tests.

use crate::factory::{raw, server_url};
use outlast_model::{Event, EventKind, WorkItem};
use outlast_provider::{
    ExecutionMetadata, OrchestrationItem, Provider, ProviderError, TagFilter, TurnCommit,
};
use std::time::Duration;
use tokio_postgres::Client;

pub(crate) const NO_WAIT: Duration = Duration::ZERO;
/// A lease that outlasts every test.
pub(crate) const LONG: Duration = Duration::from_secs(600);
/// The longest wait for a result that must arrive.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The server's URL with another user and password.
pub(crate) fn url_as(user: &str, password: &str) -> String {
    let url = server_url();
    let (scheme, rest) = url.split_once("://").expect("a URL");
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    format!("{scheme}://{user}:{password}@{place}")
}

/// The server's URL with one more option.
pub(crate) fn url_with(option: &str) -> String {
    let url = server_url();
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}{option}")
}

/// Repeats a query until it returns true.
pub(crate) async fn until(client: &Client, question: &str) {
    let asked = async {
        while !client.query_one(question, &[]).await.unwrap().get::<_, bool>(0) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| panic!("never: {question}"));
}

/// A stop for transactions that insert rows into one table.
pub(crate) struct Stop {
    client: Client,
    schema: String,
}

impl Stop {
    /// Stops transactions in COMMIT, when all rows are written.
    pub(crate) async fn in_commit(schema: &str, table: &str) -> Self {
        let trigger = format!(
            "CREATE CONSTRAINT TRIGGER stop AFTER INSERT ON {schema}.{table} DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW"
        );
        Self::by(schema, &trigger).await
    }

    /// Stops transactions after the insertion into this table; other rows may follow.
    pub(crate) async fn after_insert(schema: &str, table: &str) -> Self {
        Self::by(schema, &format!("CREATE TRIGGER stop AFTER INSERT ON {schema}.{table} FOR EACH STATEMENT"))
            .await
    }

    async fn by(schema: &str, trigger: &str) -> Self {
        let client = raw().await;
        let stop = format!(
            "CREATE FUNCTION {schema}.stop() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 PERFORM pg_advisory_xact_lock_shared(hashtext('{schema}'));
                 RETURN NULL;
             END $$;
             {trigger} EXECUTE FUNCTION {schema}.stop();
             SELECT pg_advisory_lock(hashtext('{schema}'))"
        );
        client.batch_execute(&stop).await.unwrap();
        Self { client, schema: schema.to_string() }
    }

    /// Waits until a transaction has reached the stop.
    pub(crate) async fn reached(&self) {
        self.reached_by(1).await;
    }

    /// Waits until exactly this many transactions have reached the stop.
    pub(crate) async fn reached_by(&self, transactions: usize) {
        let waits = format!(
            "SELECT count(*) = {transactions} FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
             AND objid = (hashtext('{}')::bigint & 4294967295)::oid",
            self.schema
        );
        until(&self.client, &waits).await;
    }

    /// Lets the transactions continue.
    pub(crate) async fn end(self) {
        let Self { client, schema } = self;
        let end = format!("SELECT pg_advisory_unlock(hashtext('{schema}'))");
        client.batch_execute(&end).await.unwrap();
    }
}

pub(crate) async fn execute(sql: &str) {
    raw().await.batch_execute(sql).await.unwrap();
}

pub(crate) fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_string(),
        orchestration: "Orch".to_string(),
        input: "{}".to_string(),
        version: Some("1.0.0".to_string()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

pub(crate) fn activity(instance: &str, id: u64) -> WorkItem {
    activity_with(instance, id, None, None)
}

/// An activity of a session or with a tag.
pub(crate) fn activity_with(instance: &str, id: u64, session: Option<&str>, tag: Option<&str>) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.to_string(),
        execution_id: 1,
        id,
        name: "Activity".to_string(),
        input: "input".to_string(),
        session_id: session.map(ToString::to_string),
        tag: tag.map(ToString::to_string),
    }
}

pub(crate) fn completed(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityCompleted {
        instance: instance.to_string(),
        execution_id: 1,
        id,
        result: "done".to_string(),
    }
}

pub(crate) fn started(instance: &str) -> Event {
    let kind = EventKind::OrchestrationStarted {
        name: "Orch".to_string(),
        version: "1.0.0".to_string(),
        input: "{}".to_string(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    Event::at(7, 1, instance, 1, None, kind)
}

/// The metadata of a first turn.
pub(crate) fn named() -> ExecutionMetadata {
    ExecutionMetadata {
        orchestration_name: Some("Orch".to_string()),
        orchestration_version: Some("1.0.0".to_string()),
        ..ExecutionMetadata::default()
    }
}

/// A first turn that schedules these activities.
pub(crate) fn begin(instance: &str, worker_items: Vec<WorkItem>) -> TurnCommit {
    TurnCommit {
        execution_id: 1,
        history_delta: vec![started(instance)],
        worker_items,
        orchestrator_items: vec![],
        metadata: named(),
        cancelled_activities: vec![],
    }
}

/// The metadata of the only turn of an instance.
pub(crate) fn ended() -> ExecutionMetadata {
    ExecutionMetadata { status: Some("Completed".to_string()), output: Some("out".to_string()), ..named() }
}

pub(crate) async fn enqueue(provider: &dyn Provider, instance: &str) {
    provider.enqueue_for_orchestrator(start(instance), None).await.unwrap();
}

/// Fetches a turn that must arrive in time.
pub(crate) async fn turn(provider: &dyn Provider) -> (OrchestrationItem, String, u32) {
    provider.fetch_orchestration_item(LONG, PATIENCE, None).await.unwrap().expect("a turn is ready")
}

/// Fetches an activity that must arrive in time.
pub(crate) async fn work(provider: &dyn Provider) -> (WorkItem, String, u32) {
    let fetched = provider.fetch_work_item(LONG, PATIENCE, None, &TagFilter::DefaultOnly).await;
    fetched.unwrap().expect("an activity is ready")
}

/// Commits the first and only turn of an instance.
pub(crate) async fn ack(provider: &dyn Provider, token: &str, instance: &str) -> Result<(), ProviderError> {
    provider.ack_orchestration_item(token, 1, vec![started(instance)], vec![], vec![], ended(), vec![]).await
}

/// Runs an instance from its start to its end.
pub(crate) async fn run(provider: &dyn Provider, instance: &str) {
    enqueue(provider, instance).await;
    let (item, token, _) = turn(provider).await;
    ack(provider, &token, &item.instance).await.unwrap();
}
