//! The fuzz targets: each takes bytes, does something with them, and panics if what comes of it must not be.
//!
//! `cargo xtask fuzz` runs them guided by coverage; the tests of this package replay what that left in `fuzz/corpus` and
//! add some thousand inputs of their own, on the stable toolchain.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a target tells what it found by a panic")]

mod bytes;
mod corruption;
mod decode;
mod ledger;
mod listing;
mod scratch;

pub use corruption::row_corruption;
pub use decode::{decode_event, decode_work_item};
pub use ledger::migration_ledger;
pub use listing::list_filter_cursor;

/// A target and its name, which is also the name of its corpus.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 5] = [
    ("decode_event", decode_event),
    ("decode_work_item", decode_work_item),
    ("list_filter_cursor", list_filter_cursor),
    ("migration_ledger", migration_ledger),
    ("row_corruption", row_corruption),
];
