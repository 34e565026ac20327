//! The traits of orchestrations and activities, and their implementations for functions.

use crate::ActivityContext;
use async_trait::async_trait;
use outlast_engine::OrchestrationContext;
use outlast_model::codec::Codec;
use serde::{Serialize, de::DeserializeOwned};
use std::time::Duration;

/// The code of an orchestration. Every replay runs it again from the start, so it must make the same decisions each time.
#[async_trait]
pub trait OrchestrationHandler: Send + Sync {
    /// Runs the orchestration. The result is stored as the output or failure of the instance.
    async fn invoke(&self, ctx: OrchestrationContext, input: String) -> Result<String, String>;
}

/// The code of an activity. It runs at least once per scheduled activity, so it should be idempotent:
/// [`ActivityContext::idempotency_key`] is the same on every delivery.
#[async_trait]
pub trait ActivityHandler: Send + Sync {
    /// Runs the activity. The result is stored in the history of the instance that scheduled it.
    async fn invoke(&self, ctx: ActivityContext, input: String) -> Result<String, String>;

    /// Runs the activity once, and decides whether a failure is its outcome. The runtime calls this method. The default calls
    /// [`ActivityHandler::invoke`], whose result is the outcome.
    async fn attempt(&self, ctx: ActivityContext, input: String) -> Attempt {
        Attempt::Done(self.invoke(ctx, input).await)
    }
}

/// The end of one run of an activity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    /// The outcome, which is stored in the history.
    Done(Result<String, String>),
    /// The run failed, and the activity is delivered again. The history does not change. The store counts the failure, see
    /// [`ActivityContext::failures`].
    Retry {
        /// The text of the failure, which the store keeps until the next one.
        error: String,
        /// The wait before the next delivery.
        after: Duration,
    },
}

/// An async function or closure as an [`OrchestrationHandler`].
pub struct FnOrchestration<F, Fut>(pub F)
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static;

#[async_trait]
impl<F, Fut> OrchestrationHandler for FnOrchestration<F, Fut>
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    async fn invoke(&self, ctx: OrchestrationContext, input: String) -> Result<String, String> {
        (self.0)(ctx, input).await
    }
}

/// An async function or closure as an [`ActivityHandler`].
pub struct FnActivity<F, Fut>(pub F)
where
    F: Fn(ActivityContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static;

#[async_trait]
impl<F, Fut> ActivityHandler for FnActivity<F, Fut>
where
    F: Fn(ActivityContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    async fn invoke(&self, ctx: ActivityContext, input: String) -> Result<String, String> {
        (self.0)(ctx, input).await
    }
}

/// Calls a typed function with payload text. Input that does not decode and output that does not encode are returned as the error of
/// the handler.
///
/// The function is called before the returned future is polled, so the future does not borrow or clone `f`.
pub(crate) fn invoke_typed<C: HasCodec, In, Out, F, Fut>(
    f: &F,
    ctx: C,
    input: &str,
) -> impl Future<Output = Result<String, String>> + Send + use<C, In, Out, F, Fut>
where
    In: DeserializeOwned,
    Out: Serialize,
    F: Fn(C, In) -> Fut,
    Fut: Future<Output = Result<Out, String>> + Send,
{
    let codec = ctx.codec();
    let running = codec.decode::<In>(input).map(|input| f(ctx, input));
    async move { codec.encode(&running?.await?) }
}

/// A context that has the codec for typed values.
pub(crate) trait HasCodec {
    fn codec(&self) -> Codec;
}

impl HasCodec for OrchestrationContext {
    fn codec(&self) -> Codec {
        OrchestrationContext::codec(self)
    }
}

impl HasCodec for ActivityContext {
    fn codec(&self) -> Codec {
        ActivityContext::codec(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl HasCodec for () {
        fn codec(&self) -> Codec {
            Codec::Contract
        }
    }

    #[tokio::test]
    async fn typed_handlers_decode_run_and_encode() {
        let double =
            |(), n: u32| async move { if n > 9 { Err("too big".to_string()) } else { Ok(vec![n, n]) } };
        assert_eq!(invoke_typed(&double, (), "4").await, Ok("[4,4]".to_string()));
        assert_eq!(invoke_typed(&double, (), "10").await, Err("too big".to_string()));
        let undecodable = invoke_typed(&double, (), "four").await.unwrap_err();
        assert!(undecodable.contains("invalid type: string \"four\""), "{undecodable}");
        let shout = |(), text: String| async move { Ok(text + "!") };
        assert_eq!(invoke_typed(&shout, (), "hi").await, Ok("hi!".to_string()), "strings are not quoted");
    }

    #[tokio::test]
    async fn output_that_does_not_encode_is_an_error() {
        let bad = |(), (): ()| async move { Ok(std::collections::BTreeMap::from([((1, 2), 3)])) };
        let error = invoke_typed(&bad, (), "null").await.unwrap_err();
        assert!(error.contains("key must be a string"), "{error}");
    }
}
