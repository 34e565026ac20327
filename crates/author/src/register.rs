//! The handlers of typed activities and orchestrations on a worker, and their registration.

use crate::definition::{Activity, Orchestration, Policy, Scope};
use crate::failure::{self, Fault};
use crate::payload::Payload;
use async_trait::async_trait;
use outlast_engine::OrchestrationContext;
use outlast_runtime::{ActivityContext, ActivityHandler, Module, OrchestrationHandler, States};
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
        let fault = |fault, text: String| failure::write_fault(fault, text, A::TEXT_ERRORS);
        let (codec, limit) = (ctx.codec(), ctx.limits().payload_bytes);
        let input = A::Input::decode(&input).map_err(|error| {
            fault(Fault::Value, format!("the input of activity '{}' does not decode: {error}", A::NAME))
        })?;
        let scope = Scope { context: ctx, states: self.states.clone() };
        let body = catch_panic(async move { A::run(scope, input).await });
        let outcome = match self.policy.timeout {
            None => body.await,
            Some(timeout) => tokio::time::timeout(timeout, body).await.map_err(|_| {
                let text = format!("activity '{}' did not return within {timeout:?}", A::NAME);
                fault(Fault::TimedOut, text)
            })?,
        };
        let result = match outcome {
            Ok(Ok(value)) => value.encode(codec).map_err(|error| {
                fault(Fault::Value, format!("the output of activity '{}' does not encode: {error}", A::NAME))
            }),
            Ok(Err(error)) => Err(failure::write(&error, A::TEXT_ERRORS)),
            Err(panic) => Err(fault(Fault::Panicked, format!("activity '{}': {panic}", A::NAME))),
        };
        let size = result.as_ref().map_or_else(String::len, String::len);
        match size > limit {
            true => Err(fault(Fault::Value, too_large(A::NAME, size, limit))),
            false => result,
        }
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
        let fault = |text: String| failure::write_fault(Fault::Value, text, O::TEXT_ERRORS);
        let codec = ctx.codec();
        let input = O::Input::decode(&input).map_err(|error| {
            fault(format!("the input of orchestration '{}' does not decode: {error}", O::NAME))
        })?;
        match O::run(ctx, input).await {
            Ok(value) => value.encode(codec).map_err(|error| {
                fault(format!("the output of orchestration '{}' does not encode: {error}", O::NAME))
            }),
            Err(error) => Err(failure::write(&error, O::TEXT_ERRORS)),
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
