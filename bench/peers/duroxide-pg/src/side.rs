//! The store of this side.

use crate::measure::{self, Args};
use duroxide::RuntimeOptions;
use duroxide::providers::Provider;
use duroxide_pg::PostgresProvider;
use std::sync::Arc;

pub(crate) const OPTIONS: &[&str] = &["--store"];

pub(crate) type Counts = fn() -> measure::Counts;

pub(crate) struct Store {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) durability: &'static str,
    pub(crate) counts: Counts,
}

pub(crate) async fn open(args: &Args) -> Result<Store, String> {
    let store = args.text("--store", "postgres");
    if store != "postgres" {
        return Err(format!("unknown store '{store}'"));
    }
    let opened = PostgresProvider::new_with_schema(&measure::server::url()?, Some("peer")).await;
    let provider = Arc::new(opened.map_err(|error| error.to_string())?);
    Ok(Store { provider, durability: "FULL", counts: Vec::new })
}

/// This side keeps no executions in memory.
pub(crate) fn cache(_: &mut RuntimeOptions, _: &Args) -> Result<Option<usize>, String> {
    Ok(None)
}
