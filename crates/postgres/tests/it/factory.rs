use crate::support::url_with;
use async_trait::async_trait;
use outlast_conformance::ProviderFactory;
use outlast_postgres::{PostgresProvider, ProviderConfig};
use outlast_provider::{DeadLetter, Entropy, MessageBound, OsEntropy, Provider};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_postgres::{Client, NoTls, Row};

/// The URL of the private server of the test run, for a superuser.
pub(crate) fn server_url() -> String {
    std::env::var("OUTLAST_TEST_POSTGRES_URL").expect(
        "OUTLAST_TEST_POSTGRES_URL names no server: run `cargo xtask test`, which starts a private one and sets it",
    )
}

/// A name that no other test uses.
pub(crate) fn fresh_name(kind: &str) -> String {
    format!("{kind}_{:032x}", OsEntropy.next_u128())
}

/// The configuration of a store in a schema of its own, without TLS, which has tests of its own. Behind PgBouncer the store does
/// not listen; if PgBouncer forgets prepared statements, the store prepares none.
pub(crate) fn fresh_config() -> ProviderConfig {
    let pooled = std::env::var("OUTLAST_TEST_POSTGRES_POOLED").ok();
    let config = ProviderConfig::url(url_with("sslmode=disable")).schema(fresh_name("t"));
    config.listen(pooled.is_none()).prepare(pooled.as_deref() != Some("forgets"))
}

/// A connection with which a test reads and changes rows without a store.
pub(crate) async fn raw() -> Client {
    let (client, connection) = tokio_postgres::connect(&server_url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Runs a statement on the tables of a schema without its store.
pub(crate) async fn meddle(schema: &str, sql: &str, instance: &str) -> Vec<Row> {
    raw().await.query(&sql.replace("{schema}", schema), &[&instance]).await.unwrap()
}

/// Stores in schemas of a real server.
#[derive(Default)]
pub(crate) struct PostgresFactory {
    schema: Mutex<String>,
}

impl PostgresFactory {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    async fn create(&self, config: ProviderConfig) -> Arc<dyn Provider> {
        *self.schema.lock().unwrap() = config.schema_name.clone().unwrap();
        Arc::new(PostgresProvider::new_with_config(config).await.unwrap())
    }

    async fn damage(&self, sql: &str, instance: &str) {
        let schema = self.schema.lock().unwrap().clone();
        meddle(&schema, sql, instance).await;
    }
}

#[async_trait]
impl ProviderFactory for PostgresFactory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        self.create(fresh_config()).await
    }
    async fn create_bounded_provider(&self, bound: MessageBound) -> Option<Arc<dyn Provider>> {
        Some(self.create(fresh_config().message_bound(bound)).await)
    }
    fn lock_timeout(&self) -> Duration {
        Duration::from_millis(1_000)
    }
    fn short_poll_threshold(&self) -> Duration {
        Duration::from_millis(500)
    }
    fn waits(&self) -> bool {
        true
    }
    async fn corrupt_instance_history(&self, instance: &str) {
        let sql = "UPDATE {schema}.history SET event_data = 'NOT_VALID_JSON{{{' WHERE instance_id = $1";
        self.damage(sql, instance).await;
    }
    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        let schema = self.schema.lock().unwrap().clone();
        let sql = "SELECT max(attempt_count) FROM {schema}.orchestrator_queue WHERE instance_id = $1";
        meddle(&schema, sql, instance).await[0].get::<_, i32>(0).try_into().unwrap()
    }
    fn shows_pending(&self) -> bool {
        true
    }
    fn corrupts_queues(&self) -> bool {
        true
    }
    async fn corrupt_orchestrator_messages(&self, instance: &str) {
        let sql =
            "UPDATE {schema}.orchestrator_queue SET work_item = 'NOT_VALID_JSON{{{' WHERE instance_id = $1";
        self.damage(sql, instance).await;
    }
    async fn corrupt_work_items(&self, instance: &str) {
        let sql = "UPDATE {schema}.worker_queue SET work_item = 'NOT_VALID_JSON{{{' WHERE instance_id = $1";
        self.damage(sql, instance).await;
    }
    async fn write_dead_letter(&self, letter: &DeadLetter) -> bool {
        let schema = self.schema.lock().unwrap().clone();
        let sql = "INSERT INTO {schema}.dead_letters (queue, instance_id, work_item, reason, attempt_count, dead_at)
                   SELECT r.* FROM json_to_record($1::text::json)
                       AS r (queue text, instance_id text, work_item text, reason text, attempt_count integer, dead_at bigint)";
        let row = serde_json::json!({
            "queue": letter.queue.as_str(),
            "instance_id": letter.instance_id,
            "work_item": letter.work_item,
            "reason": letter.reason,
            "attempt_count": letter.attempt_count,
            "dead_at": letter.dead_at,
        });
        meddle(&schema, sql, &row.to_string()).await;
        true
    }
}
