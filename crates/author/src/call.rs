//! A call of an activity.

use crate::call_error::{CallError, Callee};
use crate::definition::Activity;
use crate::failure::Failure;
use crate::payload;
use outlast_engine::layer::{self, Site};
use outlast_engine::{DurableFuture, OrchestrationContext};
use outlast_model::RetryPolicy;
use outlast_model::codec::Codec;
use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// A call of an activity. The call schedules the activity; awaiting it waits for the outcome. The methods change the call, and are
/// part of the same expression: `charge::call(&ctx, order).retry(3).await`.
///
/// Retries and timeouts of a call are decisions of the orchestration, which its history records. The timeout of the attribute acts
/// on the worker, and can be changed while instances run.
///
/// Cancellation safety: dropping the call cancels the activity.
#[must_use = "the activity is cancelled when its call is dropped: await it"]
pub struct Call<A: Activity> {
    site: Site,
    stage: Stage,
    extras: Option<Box<Extras>>,
    of: PhantomData<fn() -> A>,
}

enum Stage {
    /// An activity is scheduled.
    Running(DurableFuture<layer::Outcome>),
    /// The wait before the next attempt.
    Pausing(DurableFuture<()>),
    /// Nothing is scheduled, because the input does not encode.
    Unencodable(String),
    Done,
}

/// The parts of a call with a timeout or retries. Boxed, because most calls have neither, and a call is moved several times.
struct Extras {
    ctx: OrchestrationContext,
    timeout: Option<Duration>,
    timer: Option<DurableFuture<()>>,
    retry: Option<Retry>,
}

/// The data for further attempts.
struct Retry {
    policy: RetryPolicy,
    attempt: u32,
    input: String,
    tag: Option<String>,
    session_id: Option<String>,
}

impl<A: Activity> Call<A> {
    /// Schedules the activity. The verb `call` of an activity calls this.
    #[track_caller]
    pub fn new(ctx: &OrchestrationContext, input: A::Input) -> Self {
        let site = Location::caller();
        let stage = match payload::Payload::into_text(input, ctx.codec()) {
            Ok(input) => {
                let activity = layer::activity(ctx, A::NAME, input, None, site);
                if let Some(tag) = A::policy().tag {
                    layer::set_default_tag(&activity, tag);
                }
                Stage::Running(activity)
            }
            Err(error) => Stage::Unencodable(error),
        };
        Self { site, stage, extras: None, of: PhantomData }
    }

    /// Schedules the activity again if it fails: a number of attempts, the first one included, or a [`RetryPolicy`]. An error that
    /// is permanent is not retried, and a timeout is not retried.
    pub fn retry(mut self, policy: impl Into<RetryPolicy>) -> Self {
        let policy = policy.into();
        if let (Some(timeout), None) =
            (policy.timeout, self.extras.as_ref().and_then(|extras| extras.timeout))
        {
            self = self.timeout(timeout);
        }
        if let Stage::Running(activity) = &self.stage
            && let Some((input, tag, session_id)) = layer::scheduled(activity)
        {
            let retry = Retry { policy, attempt: 1, input, tag, session_id };
            self.extras().map(|extras| extras.retry.insert(retry));
        }
        self
    }

    /// Gives each attempt this much time, from the moment in which it is scheduled. The call then returns [`CallError::TimedOut`] and
    /// cancels the activity.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        let site = self.site;
        let is_running = matches!(self.stage, Stage::Running(_));
        if let Some(extras) = self.extras() {
            extras.timeout = Some(timeout);
            if is_running {
                extras.timer = Some(layer::timer(&extras.ctx, timeout, site));
            }
        }
        self
    }

    /// Sends the activity to workers that subscribe to this tag.
    ///
    /// # Panics
    ///
    /// If the call was polled already.
    #[track_caller]
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        let tag = tag.into();
        if let Stage::Running(activity) = &self.stage {
            assert!(layer::set_tag(activity, tag.clone()), "tag() came too late: call it right after call()");
        }
        if let Some(retry) = self.retries() {
            retry.tag = Some(tag);
        }
        self
    }

    /// Runs the activity on the worker that owns the session.
    ///
    /// # Panics
    ///
    /// If the call was polled already.
    #[track_caller]
    pub fn session(mut self, session: impl Into<String>) -> Self {
        let session = session.into();
        if let Stage::Running(activity) = &self.stage {
            assert!(
                layer::set_session(activity, session.clone()),
                "session() came too late: call it right after call()"
            );
        }
        if let Some(retry) = self.retries() {
            retry.session_id = Some(session);
        }
        self
    }

    /// `None` if the call is over.
    fn extras(&mut self) -> Option<&mut Extras> {
        if let (None, Stage::Running(activity)) = (&self.extras, &self.stage) {
            let ctx = layer::context(activity).clone();
            self.extras = Some(Box::new(Extras { ctx, timeout: None, timer: None, retry: None }));
        }
        self.extras.as_deref_mut()
    }

    fn retries(&mut self) -> Option<&mut Retry> {
        self.extras.as_mut()?.retry.as_mut()
    }

    fn callee() -> Callee {
        if A::TEXT_ERRORS { Callee::OfText } else { Callee::Activity }
    }

    /// Plans the next attempt, unless the error is final.
    fn plan_retry(&mut self, error: &CallError<A::Error>) -> Option<Stage> {
        let extras = self.extras.as_ref()?;
        let retry = extras.retry.as_ref()?;
        let last = retry.policy.max_attempts.max(1);
        if retry.attempt >= last || error.is_permanent() {
            return None;
        }
        layer::trace_retry(&extras.ctx, A::NAME, retry.attempt, last);
        let wait = error.failed().and_then(Failure::retry_after);
        let wait = wait.unwrap_or_else(|| retry.policy.delay_for_attempt(retry.attempt));
        match wait.is_zero() {
            true => self.next_attempt(),
            false => Some(Stage::Pausing(layer::timer(&extras.ctx, wait, self.site))),
        }
    }

    fn next_attempt(&mut self) -> Option<Stage> {
        let extras = self.extras.as_mut()?;
        let retry = extras.retry.as_mut()?;
        retry.attempt += 1;
        let (input, session) = (retry.input.clone(), retry.session_id.clone());
        let activity = layer::activity(&extras.ctx, A::NAME, input, session, self.site);
        match (&retry.tag, A::policy().tag) {
            (Some(tag), None) => {
                layer::set_tag(&activity, tag.clone());
            }
            (Some(tag), Some(default)) if tag != default => {
                layer::set_tag(&activity, tag.clone());
            }
            (_, Some(default)) => {
                layer::set_default_tag(&activity, default);
            }
            (None, None) => {}
        }
        let activity = layer::set_attempt(activity, retry.attempt);
        extras.timer = extras.timeout.map(|timeout| layer::timer(&extras.ctx, timeout, self.site));
        Some(Stage::Running(activity))
    }

    /// Drops the activity and its timer, in this order.
    fn end_attempt(&mut self) {
        self.stage = Stage::Done;
        if let Some(extras) = &mut self.extras {
            extras.timer = None;
        }
    }

    fn timed_out(&self) -> CallError<A::Error> {
        let timeout = self.extras.as_ref().and_then(|extras| extras.timeout).unwrap_or_default();
        CallError::TimedOut(format!("activity '{}' had no outcome within {timeout:?}", A::NAME))
    }
}

/// The outcome of an activity as a typed value.
fn read<A: Activity>(
    outcome: layer::Outcome,
    callee: Callee,
    codec: Codec,
) -> Result<A::Output, CallError<A::Error>> {
    match outcome {
        Ok(text) => payload::Payload::decode(text, codec).map_err(|error| {
            CallError::Other(format!("the output of activity '{}' does not decode: {error}", A::NAME))
        }),
        Err(details) => Err(CallError::of(*details, callee, codec)),
    }
}

impl<A: Activity> Unpin for Call<A> {}

impl<A: Activity> Future for Call<A> {
    type Output = Result<A::Output, CallError<A::Error>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let call = &mut *self;
        loop {
            match &mut call.stage {
                Stage::Running(activity) => {
                    let Poll::Ready(outcome) = Pin::new(&mut *activity).poll(cx) else {
                        let timer = call.extras.as_mut().and_then(|extras| extras.timer.as_mut());
                        let Some(timer) = timer else { return Poll::Pending };
                        ready!(Pin::new(timer).poll(cx));
                        let error = call.timed_out();
                        call.end_attempt();
                        return Poll::Ready(Err(error));
                    };
                    let codec = layer::context(activity).codec();
                    call.end_attempt();
                    match read::<A>(outcome, Self::callee(), codec) {
                        Ok(output) => return Poll::Ready(Ok(output)),
                        Err(error) => match call.plan_retry(&error) {
                            Some(next) => call.stage = next,
                            None => return Poll::Ready(Err(error)),
                        },
                    }
                }
                Stage::Pausing(pause) => {
                    ready!(Pin::new(pause).poll(cx));
                    call.stage = call.next_attempt().unwrap_or(Stage::Done);
                }
                Stage::Unencodable(error) => {
                    let text = format!("the input of activity '{}' does not encode: {error}", A::NAME);
                    call.stage = Stage::Done;
                    return Poll::Ready(Err(CallError::Other(text)));
                }
                Stage::Done => panic!("a call was awaited again after its outcome was taken"),
            }
        }
    }
}
