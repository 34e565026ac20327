//! The fuzz targets on the stable toolchain: what was found before, and some thousand inputs more.
// A test fails by panicking, and says before which input it did.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod corpus;
mod smoke;
