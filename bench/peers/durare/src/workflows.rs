//! The workflows: the same programs as on the other side.

use durare::{DurableContext, Result};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The times at which the steps of chains ran.
static STEPS: Mutex<Vec<Instant>> = Mutex::new(Vec::new());

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

pub(crate) async fn hello(ctx: DurableContext, number: usize) -> Result<String> {
    ctx.step("Greet", || async move { Ok(greeting(number)) }).await
}

pub(crate) async fn chain(ctx: DurableContext, steps: usize) -> Result<String> {
    let mut sum = 0;
    for step in 0..steps {
        sum += ctx
            .step("Step", || async move {
                STEPS.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
                Ok(step)
            })
            .await?;
    }
    Ok(sum.to_string())
}
