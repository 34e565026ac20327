//! The SQLite store against the specification: random sequences of every call, on both at once, with the answers and
//! the whole content compared.
//!
//! A test run takes 500 sequences of 60 calls on average. `OUTLAST_MODEL_CASES` sets another number and
//! `OUTLAST_MODEL_SEED` chooses other sequences; a night is
//! `OUTLAST_MODEL_SEED=$(date +%s) OUTLAST_MODEL_CASES=50000 cargo test --release -p outlast-sqlite --test it -- model::agrees`.
//! `OUTLAST_MODEL_SHRINKS` sets how many shorter sequences are tried when one fails; whoever only wants to know that it fails
//! sets it to 0.

mod apply;
mod build;
mod generate;
mod leases;
mod ops;
mod regressions;
mod run;
mod turn;

use ops::Op;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};
use std::str::FromStr;
use tempfile::TempDir;

/// Runs a sequence on new stores.
fn run(ops: &[Op]) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("model.db");
    runtime.block_on(async { run::Pair::open(&path).await.run(ops).await })
}

fn setting<T: FromStr>(name: &str, default: T) -> T {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What is left when every call is taken out that the difference does not need: shrinking keeps calls together that
/// were generated together.
fn without_needless(mut ops: Vec<Op>) -> Vec<Op> {
    for at in (0..ops.len()).rev() {
        let op = ops.remove(at);
        if run(&ops).is_ok() {
            ops.insert(at, op);
        }
    }
    ops
}

#[test]
fn agrees_with_the_specification() {
    let shrinks = setting("OUTLAST_MODEL_SHRINKS", 20_000);
    let mut runner = TestRunner::new(Config {
        cases: setting("OUTLAST_MODEL_CASES", 500),
        rng_seed: RngSeed::Fixed(setting("OUTLAST_MODEL_SEED", 1)),
        failure_persistence: None,
        max_shrink_iters: shrinks,
        max_shrink_time: 120_000,
        ..Config::default()
    });
    let outcome = runner.run(&generate::sequence(), |ops| run(&ops).map_err(TestCaseError::fail));
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(_, ops)) => {
            let ops = if shrinks > 0 { without_needless(ops) } else { ops };
            let difference = run(&ops).expect_err("it failed before");
            let ops: Vec<String> = ops.iter().map(|op| format!("    {op:?},\n")).collect();
            panic!("the stores differ at {difference}\nafter the sequence\n{}", ops.concat());
        }
        Err(TestError::Abort(reason)) => panic!("no sequence could be made: {reason}"),
    }
}
