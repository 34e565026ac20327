//! The outputs of the workflows, and the times of their steps: the same programs as on the other side.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The times at which the steps of chains ran.
static STEPS: Mutex<Vec<Instant>> = Mutex::new(Vec::new());

pub(crate) fn step_runs() {
    STEPS.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
}

pub(crate) fn steps_ran() -> Vec<Instant> {
    STEPS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The output of the hello with this number.
pub(crate) fn greeting(number: usize) -> String {
    format!("hello, {number}")
}

/// The output of a chain, which adds up the results of its steps: their numbers.
pub(crate) fn sum(steps: usize) -> String {
    (0..steps).sum::<usize>().to_string()
}
