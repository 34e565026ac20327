//! Activities under a retry policy. The first attempt is scheduled when the returned future is polled.

use crate::combinator::Either2;
use crate::context::OrchestrationContext;
use crate::state::Site;
use outlast_model::RetryPolicy;
use serde::{Serialize, de::DeserializeOwned};
use std::panic::Location;
use std::time::Duration;

/// The error of an attempt that exceeded the timeout of the policy. No further attempt is made.
const TIMED_OUT: &str = "timeout: activity timed out";

impl OrchestrationContext {
    /// Runs an activity until it succeeds or the policy gives up, with durable waits in between.
    #[track_caller]
    pub fn schedule_activity_with_retry(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
        policy: RetryPolicy,
    ) -> impl Future<Output = Result<String, String>> {
        self.attempts(Call { name: name.into(), input: input.into(), session_id: None }, policy)
    }

    /// Runs an activity with typed input and output until it succeeds or the policy gives up.
    #[track_caller]
    pub fn schedule_activity_with_retry_typed<In: Serialize, Out: DeserializeOwned>(
        &self,
        name: impl Into<String>,
        input: &In,
        policy: RetryPolicy,
    ) -> impl Future<Output = Result<Out, String>> {
        let input = self.encoded(input, "activity input");
        let attempts = self.attempts(Call { name: name.into(), input, session_id: None }, policy);
        let codec = self.codec();
        async move { codec.decode(&attempts.await?) }
    }

    /// Runs an activity on a session until it succeeds or the policy gives up.
    #[track_caller]
    pub fn schedule_activity_with_retry_on_session(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
        policy: RetryPolicy,
        session_id: impl Into<String>,
    ) -> impl Future<Output = Result<String, String>> {
        let session_id = Some(session_id.into());
        self.attempts(Call { name: name.into(), input: input.into(), session_id }, policy)
    }

    /// Runs an activity with typed input and output on a session until it succeeds or the policy gives up.
    #[track_caller]
    pub fn schedule_activity_with_retry_on_session_typed<In: Serialize, Out: DeserializeOwned>(
        &self,
        name: impl Into<String>,
        input: &In,
        policy: RetryPolicy,
        session_id: impl Into<String>,
    ) -> impl Future<Output = Result<Out, String>> {
        let input = self.encoded(input, "activity input");
        let session_id = Some(session_id.into());
        let attempts = self.attempts(Call { name: name.into(), input, session_id }, policy);
        let codec = self.codec();
        async move { codec.decode(&attempts.await?) }
    }

    /// Not an `async fn`, because `#[track_caller]` has no effect on one.
    #[track_caller]
    fn attempts(
        &self,
        call: Call,
        policy: RetryPolicy,
    ) -> impl Future<Output = Result<String, String>> + use<> {
        attempts(self.clone(), call, policy, Location::caller())
    }
}

struct Call {
    name: String,
    input: String,
    session_id: Option<String>,
}

async fn attempts(
    context: OrchestrationContext,
    call: Call,
    policy: RetryPolicy,
    site: Site,
) -> Result<String, String> {
    let last = policy.max_attempts.max(1);
    let mut attempt = 1;
    loop {
        let error = match one_attempt(&context, &call, attempt, policy.timeout, site).await {
            Attempt::Done(Ok(output)) => return Ok(output),
            Attempt::Done(Err(error)) if attempt >= last => return Err(error),
            Attempt::Done(Err(error)) => error,
            Attempt::TimedOut => return Err(TIMED_OUT.to_string()),
        };
        let session =
            call.session_id.as_ref().map_or(String::new(), |session| format!(" (session={session})"));
        let name = &call.name;
        let failed = format!("Activity '{name}'{session} attempt {attempt}/{last} failed");
        context.trace_quoting(format!("{failed}: {error}. Retrying..."), format!("{failed}. Retrying..."));
        let delay = policy.delay_for_attempt(attempt);
        if !delay.is_zero() {
            context.set_timer(delay, site).await;
        }
        attempt += 1;
    }
}

enum Attempt {
    Done(Result<String, String>),
    TimedOut,
}

async fn one_attempt(
    context: &OrchestrationContext,
    call: &Call,
    attempt: u32,
    timeout: Option<Duration>,
    site: Site,
) -> Attempt {
    let activity =
        context.call_activity(call.name.clone(), call.input.clone(), call.session_id.clone(), site);
    let activity = activity.with_attempt(attempt);
    let Some(timeout) = timeout else { return Attempt::Done(activity.await) };
    match context.select2(activity, context.set_timer(timeout, site)).await {
        Either2::First(result) => Attempt::Done(result),
        Either2::Second(()) => Attempt::TimedOut,
    }
}
