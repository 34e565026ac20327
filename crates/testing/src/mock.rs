//! Mocks: activities and children that a test replaces by closures.

use crate::spec::Work;
use async_trait::async_trait;
use outlast_author::{Activity, Orchestration, Payload, Policy, Register, Scope, write_failure};
use outlast_engine::OrchestrationContext;
use outlast_runtime::{ActivityContext, Module, Need, OrchestrationHandler};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// One call of a mock.
#[derive(Debug, Clone)]
pub struct MockCall {
    number: usize,
    context: ActivityContext,
}

impl MockCall {
    /// The number of this run of the mock in the run of the test, from 1. Deliveries and retries count.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The context of the activity: its key, its delivery, its cancellation.
    pub fn context(&self) -> &ActivityContext {
        &self.context
    }
}

/// The closure of a mock.
pub(crate) type Answer<A> = dyn Fn(MockCall, <A as Activity>::Input) -> Work<Result<<A as Activity>::Output, <A as Activity>::Error>>
    + Send
    + Sync;

/// The closure of a mock, and the number of its runs.
struct Mock<A: Activity> {
    answer: Arc<Answer<A>>,
    runs: Arc<AtomicUsize>,
}

impl<A: Activity> Clone for Mock<A> {
    fn clone(&self) -> Self {
        Self { answer: Arc::clone(&self.answer), runs: Arc::clone(&self.runs) }
    }
}

/// The activity `A` with the body of a mock. Its name, values and policy are those of `A`, so timeouts and retries of the attribute
/// act on the mock.
struct Mocked<A>(PhantomData<fn() -> A>);

impl<A: Activity> Activity for Mocked<A> {
    const NAME: &'static str = A::NAME;
    const TEXT_ERRORS: bool = A::TEXT_ERRORS;
    type Input = A::Input;
    type Output = A::Output;
    type Error = A::Error;

    fn policy() -> Policy {
        A::policy()
    }

    fn needs() -> Vec<Need> {
        vec![Need::of::<Mock<A>>()]
    }

    async fn run(scope: Scope, input: A::Input) -> Result<A::Output, A::Error> {
        match scope.states.get::<Mock<A>>() {
            Some(mock) => {
                let number = mock.runs.fetch_add(1, Relaxed) + 1;
                (mock.answer)(MockCall { number, context: scope.context }, input).await
            }
            // The start of a runtime checks this, see `needs`.
            None => panic!("the mock of '{}' is missing", A::NAME),
        }
    }
}

/// Replaces an activity of a module.
pub(crate) fn activity<A: Activity>(module: Module, answer: &Arc<Answer<A>>) -> Module {
    let mock = Mock::<A> { answer: Arc::clone(answer), runs: Arc::default() };
    let module = module.without_activity(A::NAME).state(mock);
    <Mocked<A> as Register<_>>::register(module)
}

/// The closure of a mocked child.
pub(crate) type ChildAnswer<O> = dyn Fn(<O as Orchestration>::Input) -> Result<<O as Orchestration>::Output, <O as Orchestration>::Error>
    + Send
    + Sync;

struct MockedChild<O: Orchestration>(Arc<ChildAnswer<O>>);

#[async_trait]
impl<O: Orchestration> OrchestrationHandler for MockedChild<O> {
    async fn invoke(&self, ctx: OrchestrationContext, input: String) -> Result<String, String> {
        let unreadable = |what: &str, error: &str| format!("the {what} of mock '{}': {error}", O::NAME);
        let input = O::Input::decode(input, ctx.codec()).map_err(|error| unreadable("input", &error))?;
        match (self.0)(input) {
            Ok(output) => output.encode(ctx.codec()).map_err(|error| unreadable("output", &error)),
            Err(error) => Err(write_failure(&error, O::TEXT_ERRORS, ctx.codec())),
        }
    }
}

/// Replaces an orchestration of a module.
pub(crate) fn child<O: Orchestration>(module: Module, answer: &Arc<ChildAnswer<O>>) -> Module {
    let handler = Arc::new(MockedChild::<O>(Arc::clone(answer)));
    module.without_orchestration(O::NAME).orchestration(O::NAME, O::VERSION, handler)
}
