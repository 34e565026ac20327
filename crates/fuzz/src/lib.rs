//! The fuzz targets. Each takes bytes, runs code with them, and panics if the result is wrong.
//!
//! `cargo xtask fuzz` runs the targets guided by coverage. The tests of this package replay the inputs in `fuzz/corpus`
//! and add some thousand random inputs, on the stable toolchain.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a target reports a finding by a panic")]

mod choices;
mod corruption;
mod decode;
mod listing;
mod migration_table;
mod scratch;

pub use corruption::row_corruption;
pub use decode::{decode_event, decode_work_item};
pub use listing::list_filter_cursor;
pub use migration_table::migration_table;

/// A target with its name, which is also the name of its corpus.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 5] = [
    ("decode_event", decode_event),
    ("decode_work_item", decode_work_item),
    ("list_filter_cursor", list_filter_cursor),
    ("migration_table", migration_table),
    ("row_corruption", row_corruption),
];
