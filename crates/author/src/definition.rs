//! The traits that the attributes implement. They can be implemented by hand.

use crate::cancel::OnCancel;
use crate::failure::Failure;
use crate::payload::Payload;
use outlast_engine::OrchestrationContext;
use outlast_runtime::{ActivityContext, Need, State, States};
use std::any::type_name;
use std::time::Duration;

/// An activity. `#[outlast::activity]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an activity",
    note = "put `#[outlast::activity]` on the function"
)]
pub trait Activity: Sized + Send + 'static {
    /// The name in histories.
    const NAME: &'static str;
    /// Whether errors are stored as plain text.
    const TEXT_ERRORS: bool = false;
    /// The value that travels to the activity.
    type Input: Payload;
    /// The value that travels back.
    type Output: Payload;
    /// The error that travels back.
    type Error: Failure;
    /// The defaults of the attribute. They act on the worker, so a change of them does not affect recorded decisions.
    fn policy() -> Policy;
    /// The states that the activity needs.
    fn needs() -> Vec<Need>;
    /// Runs the body.
    fn run(
        scope: Scope,
        input: Self::Input,
    ) -> impl Future<Output = Result<Self::Output, Self::Error>> + Send;
}

/// An orchestration. `#[outlast::orchestration]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an orchestration",
    note = "put `#[outlast::orchestration]` on the function"
)]
pub trait Orchestration: Sized + Send + 'static {
    /// The name in histories.
    const NAME: &'static str;
    /// The version. `None` is 1.0.0, and leaves the choice of the version to the runtime that begins the instance.
    const VERSION: Option<&'static str> = None;
    /// Whether errors are stored as plain text.
    const TEXT_ERRORS: bool = false;
    /// The value that travels to the orchestration.
    type Input: Payload;
    /// The value that travels back.
    type Output: Payload;
    /// The error that travels back.
    type Error: Failure;
    /// The custom status.
    type Status: Payload;
    /// The answer to a request to cancel. `None` ends the instance at once, without running its code.
    const ON_CANCEL: Option<OnCancel> = None;
    /// Runs the body.
    fn run(
        ctx: OrchestrationContext,
        input: Self::Input,
    ) -> impl Future<Output = Result<Self::Output, Self::Error>> + Send;
}

/// The parts of a result. Only `Result` implements it, so that an alias of `Result` can be a return type.
#[diagnostic::on_unimplemented(
    message = "activities and orchestrations return a `Result`, not `{Self}`",
    label = "not a `Result`",
    note = "return `Result<{Self}, E>`, where `E` is `String`, `outlast::Error` or a type that derives `outlast::Failure`"
)]
pub trait Outcome {
    /// The value.
    type Ok;
    /// The error.
    type Err;
}

#[diagnostic::do_not_recommend]
impl<T, E> Outcome for Result<T, E> {
    type Ok = T;
    type Err = E;
}

/// A message that the orchestration `O` accepts. `accepts(..)` implements it.
#[diagnostic::on_unimplemented(
    message = "`{O}` does not accept `{Self}`",
    label = "the orchestration never reads this message",
    note = "add it where the orchestration is defined: `#[outlast::orchestration(accepts({Self}))]`"
)]
pub trait AcceptedBy<O> {}

/// The surroundings of a running activity.
pub struct Scope {
    /// The context that the body gets.
    pub context: ActivityContext,
    /// The states of the runtime.
    pub states: States,
}

/// A parameter that the runtime fills in.
#[diagnostic::on_unimplemented(
    message = "the runtime cannot fill in `{Self}`",
    note = "the type in `State<T>` is `Clone + Send + Sync`: put it into an `Arc`"
)]
pub trait FromScope: Sized {
    /// The value of the parameter.
    fn from_scope(scope: &Scope) -> Self;
    /// The type that the runtime must have.
    fn need() -> Need;
}

#[diagnostic::do_not_recommend]
impl<T: Clone + Send + Sync + 'static> FromScope for State<T> {
    fn from_scope(scope: &Scope) -> Self {
        match scope.states.get::<T>() {
            Some(value) => Self(value),
            // The start of a runtime checks this, see `Module`.
            None => panic!("the runtime has no State<{}>", type_name::<T>()),
        }
    }

    fn need() -> Need {
        Need::of::<T>()
    }
}

/// The defaults of an activity, which act on the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// The longest time of one run.
    pub timeout: Option<Duration>,
    /// The tag of the workers that run it.
    pub tag: Option<&'static str>,
    /// The number of attempts, the first one included; 0 and 1 mean that it is not retried.
    pub attempts: u32,
    /// The wait before the second attempt. Each further wait is twice as long.
    pub backoff: Duration,
    /// The longest wait between two attempts.
    pub max_backoff: Duration,
}

impl Policy {
    /// No defaults.
    pub const fn new() -> Self {
        Self {
            timeout: None,
            tag: None,
            attempts: 1,
            backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(30),
        }
    }

    /// Runs the body up to this number of times if it fails, times out or panics. A permanent error is not retried.
    #[must_use]
    pub const fn retry(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }

    /// The wait before the second attempt. Each further wait is twice as long, up to `max_backoff`.
    #[must_use]
    pub const fn backoff(self, backoff: Duration) -> Self {
        Self { backoff, ..self }
    }

    /// The longest wait between two attempts.
    #[must_use]
    pub const fn max_backoff(self, max_backoff: Duration) -> Self {
        Self { max_backoff, ..self }
    }

    /// The wait before the next attempt after this number of failures, or `None` if there is no further attempt.
    pub(crate) fn retry_after(&self, failures: u32) -> Option<Duration> {
        let doublings = failures.saturating_sub(1).min(31);
        let wait = self.backoff.saturating_mul(1 << doublings).min(self.max_backoff);
        (failures < self.attempts).then_some(wait)
    }

    /// Ends a run of the body after this time.
    #[must_use]
    pub const fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Sends the activity to workers with this tag.
    #[must_use]
    pub const fn tag(self, tag: &'static str) -> Self {
        Self { tag: Some(tag), ..self }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_between_attempts_double_up_to_the_longest() {
        let second = Duration::from_secs(1);
        let policy = Policy::new().retry(5).backoff(second).max_backoff(5 * second);
        let waits: Vec<_> = (1..=5).map(|failures| policy.retry_after(failures)).collect();
        assert_eq!(waits, [Some(second), Some(2 * second), Some(4 * second), Some(5 * second), None]);
        assert_eq!(Policy::new().retry_after(1), None);
        let endless = Policy::new().retry(u32::MAX).max_backoff(Duration::MAX);
        assert_eq!(endless.retry_after(u32::MAX - 1), Some(Duration::from_millis(100 << 31)));
    }
}
