//! The scenarios of `cargo xtask bench compare`, run by duroxide on its store for Cosmos DB.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "../../cases/mod.rs"]
mod cases;
#[path = "../../measure/mod.rs"]
mod measure;
mod side;

fn main() -> std::process::ExitCode {
    cases::main(std::env::args().skip(1))
}
