//! The store of this side.

use crate::measure::{self, Args};
use duroxide::RuntimeOptions;
use duroxide::providers::Provider;
use duroxide_cdb::CosmosDBProvider;
use std::sync::Arc;

pub(crate) const OPTIONS: &[&str] = &["--store"];

pub(crate) type Counts = fn() -> measure::Counts;

pub(crate) struct Store {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) durability: &'static str,
    pub(crate) counts: Counts,
}

pub(crate) async fn open(args: &Args) -> Result<Store, String> {
    let store = args.text("--store", "cosmos");
    if store != "cosmos" {
        return Err(format!("unknown store '{store}'"));
    }
    let (endpoint, key) = measure::rig::account()?;
    let opened = CosmosDBProvider::new_with_container(
        &endpoint,
        &key,
        measure::rig::DATABASE,
        measure::rig::CONTAINER,
    );
    let provider = Arc::new(opened.await.map_err(|error| error.to_string())?);
    Ok(Store { provider, durability: "FULL", counts: Vec::new })
}

/// This side keeps no executions in memory.
pub(crate) fn cache(_: &mut RuntimeOptions, _: &Args) -> Result<Option<usize>, String> {
    Ok(None)
}
