//! Migrates the schema of a store, and refuses schemas of other programs and of newer releases.

use crate::db::{Db, ONLY, Result, cell};
use crate::deadline::within;
use crate::{MigrationPolicy, PostgresError, ProviderConfig, functions};
use outlast_provider_kit::migrations::{Applied, Migration, MigrationRefusal, SchemaState, pending};
use std::sync::LazyLock;
use std::time::Duration;
use tokio::time::Instant;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, GenericClient, Row};

/// Append-only: a released migration never changes. The checksum covers the tables, and the functions with their codes put in.
static MIGRATIONS: LazyLock<[Migration; 1]> = LazyLock::new(|| {
    let sql = format!("{TABLES_SQL}\n{}", functions::expanded(functions::SQL));
    [Migration { version: 1, name: "initial", usable_from: 1, sql: sql.leak() }]
});

const TABLES_SQL: &str = include_str!("../migrations/0001_initial.sql");

/// The migrations of this release.
pub(crate) fn bundled(config: &ProviderConfig) -> Vec<Migration> {
    MIGRATIONS.iter().chain(config.further_migrations()).copied().collect()
}

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

/// Limits how long one try of a migration waits for a lock. The server looks for deadlocks after a second, so the migration gives way
/// before a call of a running process is undone, and no call waits behind the migration for long.
const GIVE_WAY: &str = "SET LOCAL lock_timeout = 300";

/// The pause of a migration that gave way.
const PAUSE: Duration = Duration::from_millis(200);

/// Brings the schema up to date, or only checks whether it is.
pub(crate) async fn prepare(db: &Db, policy: MigrationPolicy) -> Result<()> {
    let mut client = db.connection().await?;
    let closer = client.closer();
    within(db, &closer, db.long_deadline, prepare_on(db, &mut client, policy)).await
}

/// Migrates the schema if migrations are due and the policy allows it. Refuses the schema otherwise.
async fn prepare_on(db: &Db, client: &mut Client, policy: MigrationPolicy) -> Result<()> {
    // A schema that is up to date needs no lock and no right to create objects.
    match (state_on(db, client).await, policy) {
        (Ok(state), _) if state.due.is_empty() => Ok(()),
        (Ok(_) | Err(_), MigrationPolicy::ApplyAll) => migrate_beside_others(db, client).await,
        (Ok(state), MigrationPolicy::VerifyOnly) => Err(refused(db, unapplied(&state))),
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
    let applied = applied(db, client).await?;
    Ok(SchemaState::of(&db.migrations, &applied, pending_on(db, &applied)?))
}

/// Applies the due migrations, also while processes of an older release work: a migration that changes several tables waits for their
/// transactions, and they for it. It gives way, and is tried again for as long as one statement could wait for a lock.
async fn migrate_beside_others(db: &Db, client: &mut Client) -> Result<()> {
    let give_up = Instant::now() + db.long_deadline / 2;
    loop {
        match migrate(db, client).await {
            Err(PostgresError::Conflict { code, .. })
                if code != SqlState::QUERY_CANCELED.code() && Instant::now() < give_up =>
            {
                db.counters.conflicts.add(1);
                tokio::time::sleep(PAUSE).await;
            }
            done => return done,
        }
    }
}

/// Applies the due migrations in one transaction, under a lock that only migrations of this schema take. The server releases the
/// lock with the transaction, also if this process dies.
async fn migrate(db: &Db, client: &mut Client) -> Result<()> {
    let limits = &db.begin_statements(client).await?.long;
    let transaction = client.transaction().await?;
    transaction.batch_execute(limits).await?;
    transaction.batch_execute(&db.statements.lock_migrations).await?;
    transaction.batch_execute(GIVE_WAY).await?;
    // The store checks first: a statement that creates an existing schema needs the right to create.
    let schema = db.schema.as_str();
    let exists = transaction.query_typed_one(&db.statements.schema_exists, &[(&schema, Type::TEXT)]).await?;
    if !cell::<bool>(&exists, ONLY)? {
        transaction.batch_execute(&db.statements.create_schema).await?;
    }
    // Another process may have migrated meanwhile, so the ledger is read again, under the lock.
    for migration in pending_on(db, &applied(db, &transaction).await?)? {
        transaction.batch_execute(&db.statements.create_ledger).await?;
        transaction.batch_execute(&db.schema.put_into(migration.sql)).await?;
        let version = i32::try_from(migration.version).unwrap_or(i32::MAX);
        let usable_from = i32::try_from(migration.usable_from).unwrap_or(i32::MAX);
        let row = [
            (&version as _, Type::INT4),
            (&migration.name as _, Type::TEXT),
            (&migration.checksum() as _, Type::TEXT),
            (&usable_from as _, Type::INT4),
        ];
        transaction.execute_typed(&db.statements.write_ledger, &row).await?;
    }
    Ok(transaction.commit().await?)
}

/// The migration table. That of an empty schema is empty, that of a store is not. A schema of another program is refused.
async fn applied(db: &Db, client: &impl GenericClient) -> Result<Vec<Applied>> {
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
            None => Ok(Vec::new()),
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
        let (version, usable_from) = (number(&row, "version")?, number(&row, "usable_from")?);
        ledger.push(Applied { version, usable_from, checksum: cell(&row, "checksum")? });
    }
    match ledger.is_empty() {
        true => Err(refused(db, MigrationRefusal::Damaged { what: missing(&MIGRATIONS[0]) })),
        false => Ok(ledger),
    }
}

fn number(row: &Row, column: &str) -> Result<u32> {
    Ok(u32::try_from(cell::<i32>(row, column)?).unwrap_or(0))
}

/// The migrations that are due in a schema with these applied ones.
fn pending_on<'a>(db: &'a Db, applied: &[Applied]) -> Result<&'a [Migration]> {
    pending(&db.migrations, applied).map_err(|refusal| refused(db, refusal))
}

/// The reason for which a schema with due migrations is refused if it must not be changed.
fn unapplied(state: &SchemaState) -> MigrationRefusal {
    match state.applied {
        0 => MigrationRefusal::Missing,
        found => MigrationRefusal::Older { found, known: state.known },
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What was released: version, oldest version whose releases can use it, checksum, release.
    const RELEASED: [(u32, u32, &str, &str); 1] =
        [(1, 1, "b5b82ba1d47fb7849054f1fd263aafa7bd8edb8b3875169fb5be159a452ecc96", "0.2.0")];

    #[test]
    fn released_migrations_never_change() {
        for (version, usable_from, checksum, release) in RELEASED {
            let found = MIGRATIONS.iter().find(|migration| migration.version == version);
            let found = found.map(|migration| (migration.usable_from, migration.checksum()));
            assert_eq!(
                found,
                Some((usable_from, checksum.to_string())),
                "migration {version} was released with {release} and must not change; add a new one, with new versions of \
                 functions that differ"
            );
        }
        assert_eq!(MIGRATIONS.len(), RELEASED.len(), "a migration that is released gets a row of `RELEASED`");
    }
}
