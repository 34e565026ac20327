//! The server that `cargo xtask` starts, for tests in modules `needs_postgres`.

use outlast::providers::Provider;
use outlast::providers::postgres::PostgresProvider;
use outlast::providers::{Entropy, OsEntropy};
use std::sync::Arc;
use tokio_postgres::{Client, NoTls};

pub(crate) const URL: &str = "OUTLAST_TEST_POSTGRES_URL";

pub(crate) fn server_url() -> String {
    std::env::var(URL).unwrap_or_else(|_| {
        panic!(
            "{URL} names no server: `cargo xtask postgres -- cargo test -p outlast --all-features` has one"
        )
    })
}

/// A schema name that no other test has.
pub(crate) fn fresh_schema() -> String {
    format!("t_{:032x}", OsEntropy.next_u128())
}

/// Opens a new store object, as another process would.
pub(crate) async fn open(schema: &str) -> Arc<dyn Provider> {
    Arc::new(PostgresProvider::new_with_schema(&server_url(), Some(schema)).await.unwrap())
}

/// A connection to read and change rows directly.
pub(crate) async fn raw() -> Client {
    let (client, connection) = tokio_postgres::connect(&server_url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
