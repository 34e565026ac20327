//! Stores of earlier and later releases. Later releases have one more migration.
#![cfg(feature = "test-hooks")]

use crate::factory::{fresh_config, raw};
use crate::opening::{open, schema};
use crate::support::*;
use outlast_postgres::{MigrationPolicy, PostgresError, PostgresProvider, ProviderConfig};
use outlast_provider::ProviderAdmin;
use outlast_provider_kit::migrations::{Migration, MigrationRefusal};

/// The configuration of a later release, which has one more migration.
fn later(config: &ProviderConfig, usable_from: u32) -> ProviderConfig {
    let sql = "CREATE TABLE {schema}.added (x integer)";
    let next = Migration { version: 2, name: "next", usable_from, sql };
    let mut later = config.clone();
    later.further_migrations = vec![next];
    later
}

#[tokio::test]
async fn a_store_of_an_earlier_release_is_migrated_and_keeps_its_rows() {
    let config = fresh_config();
    run(&open(&config).await.unwrap(), "old").await;
    let verifying = later(&config, 1).migrations(MigrationPolicy::VerifyOnly);
    let refused = open(&verifying).await.unwrap_err().to_string();
    assert!(refused.contains("the store has schema version 1, this release needs 2"), "{refused}");
    let store = open(&later(&config, 1)).await.unwrap();
    assert_eq!(store.list_instances().await.unwrap(), ["old"]);
    let added = format!("SELECT count(*) FROM {}.added", schema(&config));
    assert_eq!(raw().await.query_one(&added, &[]).await.unwrap().get::<_, i64>(0), 0);
}

#[tokio::test]
async fn a_store_of_a_later_release_is_opened_if_its_migration_is_usable_from_this_version() {
    let config = fresh_config();
    drop(open(&later(&config, 1)).await.unwrap());
    for (policy, id) in [(MigrationPolicy::ApplyAll, "a"), (MigrationPolicy::VerifyOnly, "b")] {
        run(&open(&config.clone().migrations(policy)).await.unwrap(), id).await;
    }
    let state = PostgresProvider::schema_state(config).await.unwrap();
    assert_eq!((state.applied, state.known, state.due), (2, 1, vec![]));
}

#[tokio::test]
async fn a_store_of_a_later_release_is_refused_if_its_migration_is_usable_from_its_own_version() {
    let config = fresh_config();
    drop(open(&later(&config, 2)).await.unwrap());
    for policy in [MigrationPolicy::ApplyAll, MigrationPolicy::VerifyOnly] {
        let error = open(&config.clone().migrations(policy)).await.unwrap_err();
        let newer = MigrationRefusal::Newer { found: 2, known: 1 };
        assert!(matches!(&error, PostgresError::Schema { refusal, .. } if *refusal == newer), "{error:?}");
        assert!(!error.is_retryable());
    }
}

#[tokio::test]
async fn a_migration_that_the_server_undoes_for_a_deadlock_is_tried_again() {
    let config = fresh_config();
    run(&open(&config).await.unwrap(), "old").await;
    // A number of a sequence stays taken when its transaction is undone.
    execute(&format!("CREATE SEQUENCE {}.tries", schema(&config))).await;
    let sql = "DO $$ BEGIN
        IF nextval('{schema}.tries') < 3 THEN RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01'; END IF;
    END $$;
    CREATE TABLE {schema}.added (x integer)";
    let mut later = config.clone();
    later.further_migrations = vec![Migration { version: 2, name: "next", usable_from: 1, sql }];
    let store = open(&later).await.unwrap();
    assert_eq!(store.stats().conflicts, 2);
    assert_eq!(PostgresProvider::schema_state(later).await.unwrap().applied, 2);
    assert_eq!(store.list_instances().await.unwrap(), ["old"]);
}
