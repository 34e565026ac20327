//! The PostgreSQL store against the specification, by sequences of every call: a test run tries 100 random ones.

use crate::factory::{fresh_name, raw};
use crate::support::url_with;
use async_trait::async_trait;
use outlast_conformance::model::{DAMAGED, Damage, Sequence, Stored, Subject};
use outlast_postgres::{PostgresProvider, ProviderConfig};
use outlast_provider::{MessageBound, Provider};
use std::sync::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, Statement};

outlast_conformance::model_tests!(100, run);

/// Schemas that no running sequence uses. Emptying a schema is faster than creating one.
static IDLE: Mutex<Vec<Place>> = Mutex::new(Vec::new());

/// A bound below the number of messages that a sequence often sends to an instance, and below the bytes of two messages with a
/// long text.
const FEW: MessageBound = MessageBound::new(2, 300);

/// Runs a sequence in an empty schema four times: with the functions for single commits and with the functions for batches, each also
/// with a small bound on the messages of a turn.
fn run(sequence: &Sequence) -> Result<(), String> {
    let idle = IDLE.lock().unwrap().pop();
    let place = idle.unwrap_or_else(Place::new);
    let outcome = place.runtime.block_on(async {
        let usual = MessageBound::default();
        for (batches_only, bound) in [(false, usual), (true, usual), (false, FEW), (true, FEW)] {
            sequence.run(&mut InSchema::open(&place, batches_only, bound).await).await?;
        }
        Ok(())
    });
    IDLE.lock().unwrap().push(place);
    outcome
}

/// A schema whose clock the test sets, and a connection that reads and changes its rows.
struct Place {
    runtime: Runtime,
    schema: String,
    client: Client,
    statements: Statements,
}

struct Statements {
    clear: Statement,
    set_time: Statement,
    dump: Statement,
    set_aside: Statement,
    stored: Statement,
}

impl Place {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let schema = fresh_name("model");
        let (client, statements) = runtime.block_on(async {
            drop(open(&schema, false, FEW).await);
            let client = raw().await;
            let within = |sql: &str| sql.replace("{schema}", &schema);
            client.batch_execute(&within(include_str!("prepare.sql"))).await.unwrap();
            let prepare = async |sql: &str| client.prepare(&within(sql)).await.unwrap();
            let statements = Statements {
                clear: prepare(include_str!("clear.sql")).await,
                set_time: prepare(include_str!("set_time.sql")).await,
                dump: prepare(include_str!("dump.sql")).await,
                set_aside: prepare("SELECT {schema}.set_aside_1(1000)").await,
                stored: prepare(include_str!("stored.sql")).await,
            };
            (client, statements)
        });
        Self { runtime, schema, client, statements }
    }
}

/// A store whose commits do not wait for the disk, and which does not listen: the sequences neither crash the server nor park
/// fetches.
async fn open(schema: &str, batches_only: bool, bound: MessageBound) -> PostgresProvider {
    let url = url_with("sslmode=disable&options=-csynchronous_commit%3Doff");
    let mut config = ProviderConfig::url(url).schema(schema).pool_size(2).listen(false);
    config.batches_only = batches_only;
    config.message_bound = bound;
    PostgresProvider::new_with_config(config).await.unwrap()
}

/// A store in the schema of a place.
struct InSchema<'a> {
    place: &'a Place,
    /// The latest time that the test has set.
    latest: i64,
    batches_only: bool,
    bound: MessageBound,
    store: PostgresProvider,
}

impl<'a> InSchema<'a> {
    async fn open(place: &'a Place, batches_only: bool, bound: MessageBound) -> Self {
        place.client.execute(&place.statements.clear, &[]).await.unwrap();
        let store = open(&place.schema, batches_only, bound).await;
        Self { place, latest: 0, batches_only, bound, store }
    }
}

#[async_trait(?Send)]
impl Subject for InSchema<'_> {
    fn provider(&self) -> &dyn Provider {
        &self.store
    }

    fn message_bound(&self) -> MessageBound {
        self.bound
    }

    async fn set_time(&mut self, now_ms: u64) {
        let now = i64::try_from(now_ms).unwrap();
        self.place.client.execute(&self.place.statements.set_time, &[&now]).await.unwrap();
        self.latest = self.latest.max(now);
    }

    async fn reopen(&mut self) {
        self.store = open(&self.place.schema, self.batches_only, self.bound).await;
    }

    /// With the small bound, the dump first sets aside all messages of leased instances: polls report only large numbers of them.
    async fn dump(&self) -> Vec<String> {
        if self.bound == FEW {
            self.place.client.execute(&self.place.statements.set_aside, &[]).await.unwrap();
        }
        let rows = self.place.client.query(&self.place.statements.dump, &[&self.latest]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    async fn damage(&self, what: Damage, instance: &str) {
        let sql = match what {
            Damage::History => "UPDATE {schema}.history SET event_data = $2 WHERE instance_id = $1",
            Damage::Messages => {
                "UPDATE {schema}.orchestrator_queue SET work_item = $2 WHERE instance_id = $1"
            }
            Damage::Work => "UPDATE {schema}.worker_queue SET work_item = $2 WHERE instance_id = $1",
        };
        let sql = sql.replace("{schema}", &self.place.schema);
        self.place.client.execute(&sql, &[&instance, &DAMAGED]).await.unwrap();
    }

    async fn stored(&self, instance: &str, execution: u64) -> Stored {
        let execution = i64::try_from(execution).unwrap();
        let statement = &self.place.statements.stored;
        let row = self.place.client.query_one(statement, &[&instance, &execution]).await.unwrap();
        Stored { last_event: u64::try_from(row.get::<_, i64>(0)).unwrap(), is_over: row.get(1) }
    }
}
