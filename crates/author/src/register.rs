//! The handlers of typed activities and orchestrations on a worker, and their registration.

use crate::cancel::{self, Ended};
use crate::definition::{Activity, Orchestration, Policy, Scope};
use crate::failure::{self, Failure, Fault};
use crate::payload::Payload;
use async_trait::async_trait;
use outlast_engine::OrchestrationContext;
use outlast_model::codec::Codec;
use outlast_runtime::{ActivityContext, ActivityHandler, Attempt, Module, OrchestrationHandler, States};
use std::any::Any;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

/// A [`Module`](outlast_runtime::Module) of typed functions:
/// `Runtime::builder().register(outlast::module![charge, fulfil])`.
#[macro_export]
macro_rules! module {
    ($($definition:path),* $(,)?) => {{
        let module = $crate::Module::new();
        $(let module = <$definition as $crate::Register<_>>::register(module);)*
        module
    }};
}

/// A type that `module![..]` can name: an activity or an orchestration. `Kind` tells the two apart.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an activity and not an orchestration",
    note = "put `#[outlast::activity]` or `#[outlast::orchestration]` on the function"
)]
pub trait Register<Kind> {
    /// Adds the function to a module.
    fn register(module: Module) -> Module;
}

/// Marks activities.
pub struct IsActivity;
/// Marks orchestrations.
pub struct IsOrchestration;

#[diagnostic::do_not_recommend]
impl<A: Activity> Register<IsActivity> for A {
    fn register(module: Module) -> Module {
        module.activity(A::NAME, A::needs(), |states| {
            Arc::new(TypedActivity::<A> { states: states.clone(), policy: A::policy(), of: PhantomData })
        })
    }
}

#[diagnostic::do_not_recommend]
impl<O: Orchestration> Register<IsOrchestration> for O {
    fn register(module: Module) -> Module {
        module.orchestration(O::NAME, O::VERSION, Arc::new(TypedOrchestration::<O>(PhantomData)))
    }
}

struct TypedActivity<A> {
    states: States,
    policy: Policy,
    of: PhantomData<fn() -> A>,
}

#[async_trait]
impl<A: Activity> ActivityHandler for TypedActivity<A> {
    async fn invoke(&self, ctx: ActivityContext, input: String) -> Result<String, String> {
        match self.attempt(ctx, input).await {
            Attempt::Done(result) => result,
            Attempt::Retry { error, .. } => Err(error),
        }
    }

    async fn attempt(&self, ctx: ActivityContext, input: String) -> Attempt {
        let (codec, limit) = (ctx.codec(), ctx.limits().payload_bytes);
        let failures = ctx.failures().saturating_add(1);
        let input = match A::Input::decode(input, codec) {
            Ok(input) => input,
            Err(error) => {
                return done(fault::<A>(
                    Fault::Value,
                    format!("the input of {} does not decode: {error}", named::<A>()),
                    codec,
                ));
            }
        };
        let scope = Scope { context: ctx, states: self.states.clone() };
        let body = catch_panic(async move { A::run(scope, input).await });
        let ran = match self.policy.timeout {
            None => Some(body.await),
            Some(timeout) => tokio::time::timeout(timeout, body).await.ok(),
        };
        let (error, wait) = match ran {
            Some(Ok(Ok(value))) => return Attempt::Done(written::<A>(value, codec, limit)),
            Some(Ok(Err(error))) if error.is_permanent() => {
                return done(bounded::<A>(failure::write(&error, A::TEXT_ERRORS, codec), codec, limit));
            }
            Some(Ok(Err(error))) => {
                let text = failure::write(&error, A::TEXT_ERRORS, codec);
                (bounded::<A>(text, codec, limit), error.retry_after())
            }
            Some(Err(panic)) => {
                let text = fault::<A>(Fault::Panicked, format!("{}: {panic}", named::<A>()), codec);
                (bounded::<A>(text, codec, limit), None)
            }
            None => {
                let timeout = self.policy.timeout.unwrap_or_default();
                (
                    fault::<A>(
                        Fault::TimedOut,
                        format!("{} did not return within {timeout:?}", named::<A>()),
                        codec,
                    ),
                    None,
                )
            }
        };
        match self.policy.retry_after(failures) {
            Some(backoff) => Attempt::Retry { error, after: wait.unwrap_or(backoff) },
            None => done(error),
        }
    }
}

fn done(error: String) -> Attempt {
    Attempt::Done(Err(error))
}

fn named<A: Activity>() -> String {
    format!("activity '{}'", A::NAME)
}

fn fault<A: Activity>(fault: Fault, text: String, codec: Codec) -> String {
    failure::write_fault(fault, text, A::TEXT_ERRORS, codec)
}

/// The text of an output.
fn written<A: Activity>(value: A::Output, codec: Codec, limit: usize) -> Result<String, String> {
    let text = value.into_text(codec).map_err(|error| {
        fault::<A>(Fault::Value, format!("the output of {} does not encode: {error}", named::<A>()), codec)
    })?;
    match text.len() > limit {
        true => Err(fault::<A>(Fault::Value, too_large(A::NAME, text.len(), limit), codec)),
        false => Ok(text),
    }
}

/// The text of an error, or of another error if it is too large.
fn bounded<A: Activity>(text: String, codec: Codec, limit: usize) -> String {
    match text.len() > limit {
        true => fault::<A>(Fault::Value, too_large(A::NAME, text.len(), limit), codec),
        false => text,
    }
}

fn too_large(name: &str, size: usize, limit: usize) -> String {
    format!(
        "the result of activity '{name}' has {size} bytes, the limit is {limit}: store it elsewhere and return a \
         reference, or raise limits.payload_bytes"
    )
}

struct TypedOrchestration<O>(PhantomData<fn() -> O>);

#[async_trait]
impl<O: Orchestration> OrchestrationHandler for TypedOrchestration<O> {
    async fn invoke(&self, ctx: OrchestrationContext, input: String) -> Result<String, String> {
        let codec = ctx.codec();
        let fault = |text: String| failure::write_fault(Fault::Value, text, O::TEXT_ERRORS, codec);
        let input = O::Input::decode(input, codec).map_err(|error| {
            fault(format!("the input of orchestration '{}' does not decode: {error}", O::NAME))
        })?;
        let result = match O::ON_CANCEL {
            None => O::run(ctx, input).await,
            Some(on_cancel) => match cancel::run(&ctx, on_cancel, O::run(ctx.clone(), input)).await {
                Ended::Returned(result) => result,
                Ended::NotUndone(text) => return Err(fault(text)),
            },
        };
        match result {
            Ok(value) => value.into_text(codec).map_err(|error| {
                fault(format!("the output of orchestration '{}' does not encode: {error}", O::NAME))
            }),
            Err(error) => Err(failure::write(&error, O::TEXT_ERRORS, codec)),
        }
    }
}

/// Awaits a future, and returns its panic as text.
async fn catch_panic<F: Future>(future: F) -> Result<F::Output, String> {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| {
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)));
        match polled {
            Ok(polled) => polled.map(Ok),
            // The future is not polled again.
            Err(panic) => Poll::Ready(Err(panic_text(&*panic))),
        }
    })
    .await
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_string(),
        (_, Some(text)) => text.clone(),
        _ => "the panic has no text".to_string(),
    }
}
