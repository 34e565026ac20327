//! Migrates the schema of a store, and refuses schemas of other programs and of newer releases.

use crate::db::{Db, ONLY, Result, cell};
use crate::deadline::within;
use crate::{MigrationPolicy, PostgresError, functions};
use outlast_provider_kit::migrations::{Applied, Migration, MigrationRefusal, SchemaState, pending};
use std::sync::LazyLock;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, GenericClient};

/// Append-only: a released text never changes. The checksum of the functions covers their shared text and their codes.
static MIGRATIONS: LazyLock<[Migration; 4]> = LazyLock::new(|| {
    [
        Migration { version: 1, name: "tables", sql: include_str!("../migrations/0001_tables.sql") },
        Migration { version: 2, name: "functions", sql: functions::expanded(functions::SQL).leak() },
        Migration { version: 3, name: "message_keys", sql: functions::expanded(MESSAGE_KEYS).leak() },
        Migration { version: 4, name: "nodes", sql: include_str!("../migrations/0004_nodes.sql") },
    ]
});

const MESSAGE_KEYS: &str = include_str!("../migrations/0003_message_keys.sql");

/// The tables that the migrations make.
const TABLES: [&str; 17] = [
    "instances",
    "executions",
    "history",
    "orchestrator_queue",
    "instance_locks",
    "worker_queue",
    "sessions",
    "kv_store",
    "kv_delta",
    "dead_letters",
    "holds",
    "paused_orchestrations",
    "audit",
    "message_keys",
    "nodes",
    "listeners",
    "owners",
];

/// Brings the schema up to date, or only checks whether it is.
pub(crate) async fn prepare(db: &Db, policy: MigrationPolicy) -> Result<()> {
    let mut client = db.connection().await?;
    let closer = client.closer();
    within(db, &closer, db.long_deadline, prepare_on(db, &mut client, policy)).await
}

/// Migrates the schema if migrations are due and the policy allows it. Refuses the schema otherwise.
async fn prepare_on(db: &Db, client: &mut Client, policy: MigrationPolicy) -> Result<()> {
    // A schema that is up to date needs no lock and no right to create objects.
    let due = due(db, client).await;
    match (due, policy) {
        (Ok([]), _) => Ok(()),
        (Ok(_) | Err(_), MigrationPolicy::ApplyAll) => migrate(db, client).await,
        (Ok(due), MigrationPolicy::VerifyOnly) => Err(refused(db, unapplied(due))),
        (Err(error), MigrationPolicy::VerifyOnly) => Err(error),
    }
}

/// The schema of the store beside that of this release. Writes nothing.
pub(crate) async fn state(db: &Db) -> Result<SchemaState> {
    let client = db.connection().await?;
    let closer = client.closer();
    within(db, &closer, db.long_deadline, state_on(db, &client)).await
}

async fn state_on(db: &Db, client: &Client) -> Result<SchemaState> {
    Ok(SchemaState::of(MIGRATIONS.as_slice(), due(db, client).await?))
}

/// Applies the due migrations in one transaction, under a lock that only migrations of this schema take. The server releases the
/// lock with the transaction, also if this process dies.
async fn migrate(db: &Db, client: &mut Client) -> Result<()> {
    let limits = &db.begin_statements(client).await?.long;
    let transaction = client.transaction().await?;
    transaction.batch_execute(limits).await?;
    transaction.batch_execute(&db.statements.lock_migrations).await?;
    // The store checks first: a statement that creates an existing schema needs the right to create.
    let schema = db.schema.as_str();
    let exists = transaction.query_typed_one(&db.statements.schema_exists, &[(&schema, Type::TEXT)]).await?;
    if !cell::<bool>(&exists, ONLY)? {
        transaction.batch_execute(&db.statements.create_schema).await?;
    }
    // Another process may have migrated meanwhile, so the ledger is read again, under the lock.
    for migration in due(db, &transaction).await? {
        transaction.batch_execute(&db.statements.create_ledger).await?;
        transaction.batch_execute(&db.schema.put_into(migration.sql)).await?;
        let version = i32::try_from(migration.version).unwrap_or(i32::MAX);
        let row = [
            (&version as _, Type::INT4),
            (&migration.name as _, Type::TEXT),
            (&migration.checksum() as _, Type::TEXT),
        ];
        transaction.execute_typed(&db.statements.write_ledger, &row).await?;
    }
    Ok(transaction.commit().await?)
}

/// The migrations that are due in an empty schema or a store. Any other schema is refused.
async fn due(db: &Db, client: &impl GenericClient) -> Result<&'static [Migration]> {
    let schema = db.schema.as_str();
    let ledger = client.query_typed(&db.statements.ledger_exists, &[(&schema, Type::TEXT)]).await?;
    let is_ours = match ledger.first() {
        Some(row) => cell::<bool>(row, ONLY)?,
        None => false,
    };
    if !is_ours {
        let tables: &[&str] = &TABLES;
        let named = [(&schema as _, Type::TEXT), (&tables as _, Type::TEXT_ARRAY)];
        return match client.query_typed(&db.statements.foreign_name, &named).await?.first() {
            None => Ok(MIGRATIONS.as_slice()),
            Some(row) => Err(PostgresError::Foreign {
                schema: schema.to_string(),
                found: format!(
                    "it has a table '{}' and no migration table of Outlast",
                    cell::<String>(row, ONLY)?
                ),
            }),
        };
    }
    let mut ledger = Vec::new();
    for row in client.query_typed(&db.statements.read_ledger, &[]).await? {
        let version = u32::try_from(cell::<i32>(&row, "version")?).unwrap_or(0);
        ledger.push(Applied { version, checksum: cell(&row, "checksum")? });
    }
    let due = pending(MIGRATIONS.as_slice(), &ledger).map_err(|refusal| refused(db, refusal))?;
    if ledger.is_empty() {
        return Err(refused(db, MigrationRefusal::Damaged { what: missing(&MIGRATIONS[0]) }));
    }
    Ok(due)
}

/// The reason for which a schema with due migrations is refused if it must not be changed.
fn unapplied(due: &[Migration]) -> MigrationRefusal {
    let known = MIGRATIONS.last().map_or(0, |newest| newest.version);
    match due.first() {
        Some(first) if first.version > MIGRATIONS[0].version => {
            MigrationRefusal::Older { found: first.version - 1, known }
        }
        _ => MigrationRefusal::Missing,
    }
}

fn missing(migration: &Migration) -> String {
    format!("version {} ({}) is missing", migration.version, migration.name)
}

fn refused(db: &Db, refusal: MigrationRefusal) -> PostgresError {
    PostgresError::Schema { schema: db.schema.as_str().to_string(), refusal }
}

/// Removes the store with all its rows. The schema goes too, unless it is `public`, which other programs use as well.
pub(crate) async fn cleanup(db: &Db) -> Result<()> {
    let client = db.connection().await?;
    let drop = match db.schema.as_str() == crate::names::DEFAULT {
        true => &db.statements.drop_objects,
        false => &db.statements.drop_schema,
    };
    within(db, &client.closer(), db.long_deadline, client.batch_execute(drop)).await
}
