//! The fuzz targets on the stable toolchain: the recorded inputs, and some thousand random ones.
// A test fails by panicking, and prints the input that it runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod corpus;
mod smoke;
