//! Opening a store: migrations, policies, roles and schema names.

use crate::factory::{fresh_config, fresh_name, raw, server_url};
use crate::support::*;
use outlast_postgres::{MigrationPolicy, PostgresError, PostgresProvider, ProviderConfig};
use outlast_provider::{Provider, ProviderAdmin, TagFilter, WorkRequest};

pub(crate) async fn open(config: &ProviderConfig) -> Result<PostgresProvider, PostgresError> {
    PostgresProvider::new_with_config(config.clone()).await
}

pub(crate) fn schema(config: &ProviderConfig) -> String {
    config.schema_name.clone().unwrap()
}

#[tokio::test]
async fn ten_concurrent_opens_migrate_once() {
    let config = fresh_config().pool_size(2);
    let opened = futures::future::join_all((0..10).map(|_| open(&config))).await;
    let stores: Vec<PostgresProvider> = opened.into_iter().map(Result::unwrap).collect();
    run(&stores[3], "i").await;
    assert_eq!(stores[7].list_instances().await.unwrap(), ["i"]);
    let applied = format!("SELECT count(*) FROM {}.outlast_migrations", schema(&config));
    assert_eq!(raw().await.query_one(&applied, &[]).await.unwrap().get::<_, i64>(0), 1);
}

/// The page, with the database and the schema of the test. The transaction is undone: roles belong to the whole server.
#[tokio::test]
async fn statements_of_the_page_for_two_roles_are_executed() {
    let config = fresh_config();
    open(&config).await.unwrap();
    let page = include_str!("../../../../docs/postgres.md");
    let blocks: Vec<&str> =
        page.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 1, "each block needs a test");
    let mut client = raw().await;
    let database: String =
        client.query_one("SELECT quote_ident(current_database())", &[]).await.unwrap().get(0);
    let text = blocks[0].replace("DATABASE orders", &format!("DATABASE {database}"));
    let text = text.replace("SCHEMA outlast", &format!("SCHEMA {}", schema(&config)));
    let text = text.replace(" outlast.", &format!(" {}.", schema(&config)));
    let transaction = client.transaction().await.unwrap();
    transaction.batch_execute(&text).await.unwrap();
    let asked = format!(
        "SELECT has_table_privilege('outlast_worker', '{0}.instances', 'DELETE'),
                has_table_privilege('outlast_worker', '{0}.outlast_migrations', 'DELETE')",
        schema(&config)
    );
    let rights = transaction.query_one(&asked, &[]).await.unwrap();
    assert_eq!((rights.get(0), rights.get(1)), (true, false));
    transaction.rollback().await.unwrap();
}

#[tokio::test]
async fn unknown_migration_ledger_is_refused() {
    let cases = [
        ("INSERT INTO {}.outlast_migrations VALUES (99, 'later', 'x', 99)", "schema version 99"),
        ("UPDATE {}.outlast_migrations SET checksum = 'x'", "another text"),
        ("UPDATE {}.outlast_migrations SET version = 2", "found version 2 where 1 belongs"),
        ("UPDATE {}.outlast_migrations SET usable_from = 0", "usable from version 0"),
        ("INSERT INTO {}.outlast_migrations VALUES (3, 'later', 'x', 1)", "found version 3 where 2 belongs"),
        ("DELETE FROM {}.outlast_migrations", "version 1 (initial) is missing"),
    ];
    for (damage, expected) in cases {
        let config = fresh_config();
        run(&open(&config).await.unwrap(), "i").await;
        execute(&damage.replace("{}", &schema(&config))).await;
        for policy in [MigrationPolicy::ApplyAll, MigrationPolicy::VerifyOnly] {
            let refusal = open(&config.clone().migrations(policy)).await.unwrap_err();
            assert!(matches!(refusal, PostgresError::Schema { .. }), "{refusal}");
            assert!(refusal.to_string().contains(expected) && !refusal.is_retryable(), "{refusal}");
        }
        let rows = format!("SELECT count(*) FROM {}.instances", schema(&config));
        assert_eq!(
            raw().await.query_one(&rows, &[]).await.unwrap().get::<_, i64>(0),
            1,
            "the ledger is unchanged"
        );
    }
}

#[tokio::test]
async fn schema_with_foreign_tables_is_refused() {
    let config = fresh_config();
    let name = schema(&config);
    execute(&format!("CREATE SCHEMA {name}; CREATE TABLE {name}.history (x integer)")).await;
    let refusal = open(&config).await.unwrap_err();
    assert!(
        matches!(&refusal, PostgresError::Foreign { found, .. } if found.contains("history")),
        "{refusal}"
    );
    // Tables with other names do not conflict.
    execute(&format!("DROP TABLE {name}.history; CREATE TABLE {name}.orders (x integer)")).await;
    run(&open(&config).await.unwrap(), "i").await;
}

#[tokio::test]
async fn verifying_creates_nothing() {
    let config = fresh_config().migrations(MigrationPolicy::VerifyOnly);
    let refusal = open(&config).await.unwrap_err();
    assert!(matches!(refusal, PostgresError::Schema { .. }), "{refusal}");
    let exists = format!("SELECT count(*) FROM pg_namespace WHERE nspname = '{}'", schema(&config));
    assert_eq!(raw().await.query_one(&exists, &[]).await.unwrap().get::<_, i64>(0), 0);
    drop(open(&config.clone().migrations(MigrationPolicy::ApplyAll)).await.unwrap());
    run(&open(&config).await.unwrap(), "i").await;
}

#[tokio::test]
async fn role_without_create_right_can_verify() {
    let config = fresh_config();
    let (schema, role) = (schema(&config), fresh_name("worker"));
    drop(open(&config).await.unwrap());
    execute(&format!("CREATE ROLE {role} LOGIN PASSWORD 'w'; GRANT USAGE ON SCHEMA {schema} TO {role}"))
        .await;
    let mut as_worker = ProviderConfig::url(url_as(&role, "w")).schema(&schema);
    let denied = open(&as_worker).await.unwrap_err();
    assert!(matches!(denied, PostgresError::Denied { .. }) && !denied.is_retryable(), "{denied}");
    execute(&format!(
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};
         REVOKE INSERT, UPDATE, DELETE ON {schema}.outlast_migrations FROM {role}"
    ))
    .await;
    for policy in [MigrationPolicy::ApplyAll, MigrationPolicy::VerifyOnly] {
        as_worker.migration_policy = policy;
        let store = open(&as_worker).await.unwrap();
        run(&store, "i").await;
        store.delete_instance("i", false).await.unwrap();
    }
    // The role cannot create a schema of its own.
    let elsewhere = ProviderConfig::url(url_as(&role, "w")).schema(fresh_name("t"));
    let denied = open(&elsewhere).await.unwrap_err();
    assert!(matches!(denied, PostgresError::Denied { .. }), "{denied}");
}

#[tokio::test]
async fn invalid_schema_name_is_refused_before_connecting() {
    for name in ["a\"; DROP SCHEMA public CASCADE; --", "", "pg_toast", "a b", &"x".repeat(64)] {
        let refusal =
            PostgresProvider::new_with_schema("postgres://nobody@nowhere.invalid/x", Some(name)).await;
        let refusal = refusal.unwrap_err();
        assert!(matches!(refusal, PostgresError::InvalidSchema { .. }), "{name}: {refusal}");
    }
}

#[tokio::test]
async fn schema_name_keeps_its_case() {
    let name = fresh_name("Mixed");
    let store = PostgresProvider::new_with_schema(&server_url(), Some(&name)).await.unwrap();
    run(&store, "i").await;
    assert_eq!(store.schema_name(), name);
    store.initialize_schema().await.unwrap();
    store.cleanup_schema().await.unwrap();
    let exists = "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)";
    assert!(!raw().await.query_one(exists, &[&name]).await.unwrap().get::<_, bool>(0));
}

/// The public schema keeps the tables of other programs. The test uses a database of its own, because other tests use the public
/// schema of the shared one.
#[tokio::test]
async fn cleanup_keeps_the_public_schema() {
    let database = fresh_name("d");
    execute(&format!("CREATE DATABASE {database}")).await;
    let url = server_url();
    let (server, _) = url.rsplit_once('/').expect("a URL with a database");
    let store = PostgresProvider::new(&format!("{server}/{database}")).await.unwrap();
    assert_eq!(store.schema_name(), "public");
    run(&store, "i").await;
    store.cleanup_schema().await.unwrap();
    drop(store);
    let again = PostgresProvider::new(&format!("{server}/{database}")).await.unwrap();
    assert!(again.list_instances().await.unwrap().is_empty());
    run(&again, "i").await;
}

/// A call moves its future several times, so the future does not hold the state of a TLS handshake.
#[tokio::test]
async fn future_of_a_call_is_smaller_than_the_state_of_a_handshake() {
    let store = open(&fresh_config()).await.unwrap();
    let (tag_filter, poll_timeout, lock_timeout) = (&TagFilter::DefaultOnly, NO_WAIT, NO_WAIT);
    let request = WorkRequest { max_items: 1, lock_timeout, poll_timeout, session: None, tag_filter };
    let sizes = [size_of_val(&*store.fetch_work_items(request)), size_of_val(&*store.read("i"))];
    assert!(sizes.iter().all(|size| *size < 8 * 1024), "bytes of the futures: {sizes:?}");
}
