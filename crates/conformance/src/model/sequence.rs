//! Sequences, and the search for one in which two stores differ.

use super::generate;
use super::ops::Op;
use super::pair::Pair;
use super::subject::Subject;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};
use std::cell::{Cell, RefCell};
use std::str::FromStr;

/// A list of calls.
#[derive(Debug, Clone)]
pub struct Sequence(pub(super) Vec<Op>);

impl Sequence {
    /// Makes the calls on the specification and on an empty store, then every read. The error names the difference.
    pub async fn run(&self, store: &mut dyn Subject) -> Result<(), String> {
        Pair::new(store).await.run(&self.0).await
    }

    /// The calls, a line each.
    fn text(&self) -> String {
        self.0.iter().map(|op| format!("    {op:?},\n")).collect()
    }

    /// Removes every call that is not needed for the difference: shrinking does not split calls that were generated together.
    fn without_needless(mut self, run: Run<'_>) -> Self {
        for at in (0..self.0.len()).rev() {
            let op = self.0.remove(at);
            if run(&self).is_ok() {
                self.0.insert(at, op);
            }
        }
        self
    }
}

/// Runs a sequence on a new store: opens it and calls [`Sequence::run`].
pub type Run<'a> = &'a dyn Fn(&Sequence) -> Result<(), String>;

fn setting<T: FromStr>(name: &str, default: T) -> T {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// An endless iterator of random sequences, which depends on the seed only.
pub fn sequences(seed: u64) -> impl Iterator<Item = Sequence> {
    let config = Config { rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let strategy = generate::sequence();
    std::iter::from_fn(move || Some(Sequence(strategy.new_tree(&mut runner).ok()?.current())))
}

/// Runs this number of random sequences, or `OUTLAST_MODEL_CASES`, and panics with the shortest sequence found in which the store
/// differs from the specification. `OUTLAST_COMPARISON_JSON` names a file for the figures.
pub fn agrees_with_the_specification(cases: u32, run: Run<'_>) {
    let shrinks = setting("OUTLAST_MODEL_SHRINKS", 20_000);
    let mut runner = TestRunner::new(Config {
        cases: setting("OUTLAST_MODEL_CASES", cases),
        rng_seed: RngSeed::Fixed(setting("OUTLAST_MODEL_SEED", 1)),
        failure_persistence: None,
        max_shrink_iters: shrinks,
        max_shrink_time: 120_000,
        ..Config::default()
    });
    let (agreeing, calls) = (Cell::new(0_u64), Cell::new(0_u64));
    // The first difference and its sequence: a store that differs once may agree when the sequence is repeated.
    let first = RefCell::new(None);
    let outcome = runner.run(&generate::sequence(), |ops| {
        let (count, sequence) = (ops.len() as u64, Sequence(ops));
        run(&sequence).map_err(|difference| {
            first.borrow_mut().get_or_insert_with(|| (difference.clone(), sequence.text()));
            TestCaseError::fail(difference)
        })?;
        agreeing.set(agreeing.get() + 1);
        calls.set(calls.get() + count);
        Ok(())
    });
    if let Ok(file) = std::env::var("OUTLAST_COMPARISON_JSON") {
        let (sequences, calls, different) = (agreeing.get(), calls.get(), u8::from(outcome.is_err()));
        let figures =
            format!("{{\"sequences\": {sequences}, \"calls\": {calls}, \"different\": {different}}}\n");
        std::fs::write(&file, figures).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(_, ops)) => {
            let found = Sequence(ops);
            let found = if shrinks > 0 { found.without_needless(run) } else { found };
            match (run(&found), first.into_inner()) {
                (Err(difference), _) => {
                    panic!("the stores differ at {difference}\nafter the sequence\n{}", found.text())
                }
                (Ok(()), Some((difference, text))) => {
                    panic!(
                        "the stores differed once, and not when the calls were repeated, at {difference}\nafter the sequence\n{text}"
                    )
                }
                (Ok(()), None) => panic!("a sequence failed without a difference:\n{}", found.text()),
            }
        }
        Err(TestError::Abort(reason)) => panic!("no sequence could be made: {reason}"),
    }
}
