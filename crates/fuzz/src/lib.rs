//! The fuzz targets. Each takes bytes, runs code with them, and panics if the result is wrong.
//!
//! `cargo xtask fuzz` runs the targets guided by coverage. The tests of this package replay the inputs in `fuzz/corpus`
//! and add some thousand random inputs, on the stable toolchain.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a target reports a finding by a panic")]

mod choices;
mod corruption;
mod decode;
mod history;
mod http;
mod import;
mod listing;
mod migration_table;
mod scratch;
mod urls;

pub use corruption::row_corruption;
pub use decode::{decode_event, decode_work_item};
pub use history::replay_history;
pub use http::http_request;
pub use import::import_file;
pub use listing::list_filter_cursor;
pub use migration_table::migration_table;
pub use urls::connection_url;

/// A target with its name, which is also the name of its corpus.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 9] = [
    ("connection_url", connection_url),
    ("decode_event", decode_event),
    ("decode_work_item", decode_work_item),
    ("http_request", http_request),
    ("import_file", import_file),
    ("list_filter_cursor", list_filter_cursor),
    ("migration_table", migration_table),
    ("replay_history", replay_history),
    ("row_corruption", row_corruption),
];
