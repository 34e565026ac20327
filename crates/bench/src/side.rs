//! Our side of the shared scenarios: our stores, their counts, and the cache of the runtime.

use crate::measure::{self, Args};
use duroxide::RuntimeOptions;
use duroxide::providers::Provider;
use duroxide::providers::memory::MemoryProvider;
use duroxide::providers::postgres::PostgresProvider;
use duroxide::providers::sqlite::{SqliteOptions, SqliteProvider, Synchronous};
use std::path::Path;
use std::sync::Arc;

pub(crate) const OPTIONS: &[&str] = &["--store", "--synchronous", "--cache"];

/// Counts since the store was opened.
pub(crate) type Counts = Box<dyn Fn() -> measure::Counts + Send + Sync>;

pub(crate) struct Store {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) durability: &'static str,
    pub(crate) counts: Counts,
}

pub(crate) async fn open(args: &Args) -> Result<Store, String> {
    let (synchronous, word) = match args.text("--synchronous", "full") {
        "full" => (Synchronous::Full, "FULL"),
        "normal" => (Synchronous::Normal, "NORMAL"),
        other => return Err(format!("--synchronous is full or normal, not '{other}'")),
    };
    match args.text("--store", "sqlite") {
        "sqlite" => {
            let path = Path::new(args.text("--dir", ".")).join("case.db");
            sqlite(&format!("sqlite:{}", path.display()), synchronous, word).await
        }
        url @ "sqlite::memory:" => sqlite(url, synchronous, "none").await,
        "memory" => Ok(Store {
            provider: Arc::new(MemoryProvider::new()),
            durability: "none",
            counts: Box::new(Vec::new),
        }),
        "postgres" => postgres().await,
        #[cfg(feature = "cosmos")]
        "cosmos" => cosmos().await,
        other => Err(format!("unknown store '{other}'")),
    }
}

async fn postgres() -> Result<Store, String> {
    let url = measure::server::url()?;
    let store = PostgresProvider::new_with_schema(&url, Some("outlast")).await;
    let store = Arc::new(store.map_err(|error| error.to_string())?);
    let counted = Arc::clone(&store);
    let counts = move || vec![("conflicts", counted.stats().conflicts)];
    Ok(Store { provider: store, durability: "FULL", counts: Box::new(counts) })
}

#[cfg(feature = "cosmos")]
async fn cosmos() -> Result<Store, String> {
    use duroxide::providers::cosmos::CosmosDBProvider;
    use measure::rig::{CONTAINER, DATABASE, account};
    let (endpoint, key) = account()?;
    let store = CosmosDBProvider::new_with_container(&endpoint, &key, DATABASE, CONTAINER).await;
    let store = store.map_err(|error| error.to_string())?;
    Ok(Store { provider: Arc::new(store), durability: "FULL", counts: Box::new(Vec::new) })
}

async fn sqlite(url: &str, synchronous: Synchronous, durability: &'static str) -> Result<Store, String> {
    let options = SqliteOptions { synchronous, ..SqliteOptions::default() };
    let store = SqliteProvider::new(url, Some(options)).await.map_err(|error| error.to_string())?;
    let store = Arc::new(store);
    let counted = Arc::clone(&store);
    // A commit is a sync only at FULL.
    let commits = if durability == "FULL" { "syncs" } else { "commits" };
    let counts = move || {
        let stats = counted.stats();
        let rows = stats.history_rows_read + stats.kv_rows_read;
        vec![("statements", stats.statements), (commits, stats.commits), ("rows_read", rows)]
    };
    Ok(Store { provider: store, durability, counts: Box::new(counts) })
}

/// Switches the cache of warm executions off if requested; returns its limit.
pub(crate) fn cache(options: &mut RuntimeOptions, args: &Args) -> Result<Option<usize>, String> {
    match args.text("--cache", "on") {
        "on" => Ok(Some(options.warm_bytes)),
        "off" => {
            options.warm_executions = 0;
            Ok(None)
        }
        other => Err(format!("--cache is on or off, not '{other}'")),
    }
}
