//! The store of this side.

use crate::measure::{self, Args};
use duroxide::RuntimeOptions;
use duroxide::providers::Provider;
use duroxide::providers::sqlite::SqliteProvider;
use std::sync::Arc;

pub(crate) const OPTIONS: &[&str] = &["--store"];

pub(crate) type Counts = fn() -> measure::Counts;

pub(crate) struct Store {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) durability: &'static str,
    pub(crate) counts: Counts,
}

pub(crate) async fn open(args: &Args) -> Result<Store, String> {
    let (opened, durability) = match args.text("--store", "sqlite") {
        "sqlite" => {
            let path = std::path::Path::new(args.text("--dir", ".")).join("case.db");
            let url = format!("sqlite:{}?mode=rwc", path.display());
            // SQLite does not know the value of its pragma, and uses NORMAL.
            (SqliteProvider::new(&url, None).await, "NORMAL")
        }
        "sqlite::memory:" => (SqliteProvider::new_in_memory().await, "none"),
        other => return Err(format!("unknown store '{other}'")),
    };
    let provider = Arc::new(opened.map_err(|error| error.to_string())?);
    Ok(Store { provider, durability, counts: Vec::new })
}

/// This side keeps no executions in memory.
pub(crate) fn cache(_: &mut RuntimeOptions, _: &Args) -> Result<Option<usize>, String> {
    Ok(None)
}
