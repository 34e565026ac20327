//! A test of an orchestration: its module, mocks, messages and options.

use crate::mock::{self, MockCall};
use crate::replay_check::ReplayReport;
use crate::run::Run;
use crate::running::Running;
use crate::spec::{Action, Outside, Spec};
use crate::test_run::TestRun;
use crate::trouble::Trouble;
use outlast_author::{AcceptedBy, Activity, Handle, Message, Orchestration, Payload};
use outlast_model::codec::Codec;
use outlast_runtime::{Module, RuntimeOptions};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A test of the orchestration `O`. It can be run any number of times; each run has its own store and begins at the same time.
///
/// Every run uses the shipped runtime on a store in memory, under a paused clock: when every task waits, time jumps to the next timer.
/// Call it in a plain `#[test]` function; tests run in parallel.
///
/// ```
/// use outlast::prelude::*;
/// use outlast::testing::{Test, days};
///
/// #[outlast::activity]
/// async fn remind(_ctx: ActivityContext, who: String) -> Result<(), String> { Err(format!("no mail for {who}")) }
///
/// #[outlast::orchestration]
/// async fn reminder(ctx: OrchestrationContext, who: String) -> Result<String, String> {
///     ctx.sleep(days(30)).await;
///     remind::call(&ctx, who.clone()).await?;
///     Ok(format!("reminded {who}"))
/// }
///
/// # /*
/// #[test]
/// # */
/// fn reminder_comes_after_a_month() {
///     let test = Test::<reminder>::new(outlast::module![remind, reminder]).mock::<remind>(|_| Ok(()));
///     let run = test.run("Ada".into());
///     assert_eq!(run.output(), "reminded Ada");
///     assert_eq!(run.elapsed(), days(30));
///     run.calls::<remind>().once();
/// }
/// # reminder_comes_after_a_month();
/// ```
pub struct Test<O: Orchestration> {
    pub(crate) spec: Spec,
    of: PhantomData<fn() -> O>,
}

impl<O: Orchestration> Clone for Test<O> {
    fn clone(&self) -> Self {
        Self { spec: self.spec.clone(), of: PhantomData }
    }
}

impl<O: Orchestration> Test<O> {
    /// A test with the functions of a module. The orchestration itself must be one of them.
    ///
    /// Values of [`Module::state`] are shared by all runs. Give values that a run changes to [`Test::world`] or [`Test::state`], which
    /// make a new one for each run.
    pub fn new(module: Module) -> Self {
        let spec = Spec {
            orchestration: O::NAME,
            version: O::VERSION,
            instance: format!("{}-1", O::NAME),
            module,
            mocks: BTreeMap::new(),
            child_mocks: BTreeMap::new(),
            per_process: Vec::new(),
            outside: Vec::new(),
            actions: Vec::new(),
            limit: crate::days(3_650),
            most_calls: 100_000,
            settle: Duration::ZERO,
            configure: Vec::new(),
            checks_replay: true,
            holds_clock: false,
        };
        Self { spec, of: PhantomData }
    }

    /// Replaces the body of an activity. The module need not have the activity, nor the state that it needs. Timeouts and retries of
    /// the attribute act on the mock. Of several mocks of an activity the last one counts, so that a test can replace one of those that
    /// a function for all tests made.
    ///
    /// Several inputs are one value with a field for each: `|input| Ok(format!("{} for {}", input.cents, input.order))`.
    #[must_use]
    pub fn mock<A: Activity>(
        self,
        answer: impl Fn(A::Input) -> Result<A::Output, A::Error> + Send + Sync + 'static,
    ) -> Self {
        self.mock_with::<A, _>(move |_, input| std::future::ready(answer(input)))
    }

    /// Replaces the body of an activity by an async closure, which also gets the number of the call and the context.
    #[must_use]
    pub fn mock_with<A: Activity, F>(
        mut self,
        answer: impl Fn(MockCall, A::Input) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<A::Output, A::Error>> + Send + 'static,
    {
        let answer: Arc<mock::Answer<A>> = Arc::new(move |call, input| Box::pin(answer(call, input)));
        self.spec.mocks.insert(A::NAME, Arc::new(move |module| mock::activity::<A>(module, &answer)));
        self
    }

    /// Replaces the body of an activity by answers, one for each call; the last one repeats. Each run of the test begins with the
    /// first answer.
    ///
    /// # Panics
    ///
    /// If there is no answer.
    #[must_use]
    pub fn answers<A: Activity>(self, answers: impl IntoIterator<Item = Result<A::Output, A::Error>>) -> Self
    where
        A::Output: Clone + Sync,
        A::Error: Clone + Sync,
    {
        let answers: Arc<[Result<A::Output, A::Error>]> = answers.into_iter().collect();
        assert!(!answers.is_empty(), "the mock of '{}' needs an answer", A::NAME);
        self.mock_with::<A, _>(move |call, _| {
            let at = call.number().min(answers.len()) - 1;
            std::future::ready(answers[at].clone())
        })
    }

    /// Replaces the code of a child or a detached orchestration. The answer must depend on the input alone, because a replay asks
    /// again.
    #[must_use]
    pub fn mock_child<C: Orchestration>(
        mut self,
        answer: impl Fn(C::Input) -> Result<C::Output, C::Error> + Send + Sync + 'static,
    ) -> Self {
        let answer: Arc<mock::ChildAnswer<C>> = Arc::new(answer);
        self.spec.child_mocks.insert(C::NAME, Arc::new(move |module| mock::child::<C>(module, &answer)));
        self
    }

    /// Adds a [`State`](outlast_author::State) that each process makes anew: a crash loses it, as it loses the memory of a process.
    #[must_use]
    pub fn state<T: Clone + Send + Sync + 'static>(
        mut self,
        make: impl Fn() -> T + Send + Sync + 'static,
    ) -> Self {
        self.spec.per_process.push(Arc::new(move |module: Module| module.state(make())));
        self
    }

    /// Adds a [`State`](outlast_author::State) that stands for the world outside: a fake of a bank, a mail server, a database. Each run
    /// makes its own, and crashes do not touch it. The sweeps compare the value of `observe`: for [`Test::crash_everywhere`] let it
    /// return the effects in their order, for [`Test::fail_everywhere`] and [`Test::cancel_everywhere`] what is left.
    ///
    /// A fake awaits before its effect, as a request does (`tokio::task::yield_now().await`), or no fault and no request to cancel comes
    /// between the begin of the activity and its effect.
    #[must_use]
    pub fn world<T: Clone + Send + Sync + 'static, V: fmt::Debug>(
        mut self,
        make: impl Fn() -> T + Send + Sync + 'static,
        observe: impl Fn(&T) -> V + Send + Sync + 'static,
    ) -> Self {
        let observe = Arc::new(observe);
        self.spec.outside.push(Arc::new(move || {
            let value = make();
            let (observe, seen) = (Arc::clone(&observe), value.clone());
            Outside {
                install: Arc::new(move |module: Module| module.state(value.clone())),
                observe: Box::new(move || format!("{:?}", observe(&seen))),
            }
        }));
        self
    }

    /// Sends a message at this time after the start of the instance: `Approval { yes: true }`, or a reference to a message.
    #[must_use]
    pub fn send_at<M: ToSend<O, Kind>, Kind>(self, at: Duration, message: M) -> Self {
        let text = message.message().encode(Codec::Json);
        self.act(at, format!("sends a message of queue '{}'", <M::Message as Message>::NAME), move |handle| {
            let message = text.clone().and_then(|text| <M::Message as Payload>::decode(text, Codec::Json));
            async move { handle.send(message?).await.map_err(|error| error.to_string()) }
        })
    }

    /// Cancels the instance at this time after its start.
    #[must_use]
    pub fn cancel_at(self, at: Duration, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        self.act(at, "cancels the instance".to_string(), move |handle| {
            let reason = reason.clone();
            async move { handle.cancel(reason).await }
        })
    }

    /// Does something at this time after the start of the instance: `|order| async move { order.ask(AddItem(7)).await.map(drop) }`.
    /// An error fails the test.
    #[must_use]
    pub fn at<F, E>(self, at: Duration, act: impl Fn(Handle<O>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        self.act(at, "acts (`.at`)".to_string(), act)
    }

    fn act<F, E>(
        mut self,
        at: Duration,
        words: String,
        act: impl Fn(Handle<O>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        let run = Arc::new(move |client, instance: String| -> crate::spec::Work<Result<(), String>> {
            let acting = act(Handle::new(&client, instance));
            Box::pin(async move { acting.await.map_err(|error| error.to_string()) })
        });
        self.spec.actions.push(Action { at, words, run });
        self
    }

    /// The id of the instance. It is the name of the orchestration with `-1` otherwise.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.spec.instance = id.into();
        self
    }

    /// The virtual time in which the instance must end: ten years otherwise.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.spec.limit = limit;
        self
    }

    /// The most calls of the run to its store, which end an instance that loops without waiting: 100,000 otherwise.
    #[must_use]
    pub fn call_limit(mut self, calls: u64) -> Self {
        self.spec.most_calls = calls;
        self
    }

    /// Goes on for this virtual time after the end of the instance, for detached instances that go on.
    #[must_use]
    pub fn settle(mut self, time: Duration) -> Self {
        self.spec.settle = time;
        self
    }

    /// Changes the options of the runtime: `|options| RuntimeOptions { codec: Codec::Json, ..options }`. The options that the closure
    /// gets are those of tests, with leases and polls that no timer ends.
    #[must_use]
    pub fn configure(
        mut self,
        configure: impl Fn(RuntimeOptions) -> RuntimeOptions + Send + Sync + 'static,
    ) -> Self {
        self.spec.configure.push(Arc::new(configure));
        self
    }

    /// Holds virtual time while the body of an activity runs, for activities with real input and output. Without it, time jumps while
    /// they wait for a socket, and timeouts fire. Bodies that sleep by tokio's clock never end with it.
    #[must_use]
    pub fn hold_time(mut self) -> Self {
        self.spec.holds_clock = true;
        self
    }

    /// Does not replay every turn. The replay finds code that is not deterministic, and runs the code of every turn twice.
    #[must_use]
    pub fn without_replay(mut self) -> Self {
        self.spec.checks_replay = false;
        self
    }

    /// Runs an instance to its end.
    ///
    /// # Panics
    ///
    /// With a [`Trouble`]: the instance does not end, its code is not deterministic, or an activity is missing.
    #[track_caller]
    pub fn run(&self, input: O::Input) -> Run<O> {
        match self.try_run(input) {
            Ok(run) => run,
            Err(trouble) => panic!("{trouble}"),
        }
    }

    /// Runs an instance to its end, or returns the reason why it cannot be judged.
    ///
    /// # Errors
    ///
    /// See [`Trouble`].
    pub fn try_run(&self, input: O::Input) -> Result<Run<O>, Trouble> {
        self.start_checked()?;
        let input = self.encode(&input)?;
        let mut test_run = TestRun::new(&self.spec, None, false);
        let process = test_run.run(&input)?;
        let run = Run::of(&test_run, &process)?;
        self.replay(&test_run, &run)?;
        Ok(run)
    }

    /// Starts an instance that the test drives step by step.
    ///
    /// # Panics
    ///
    /// With a [`Trouble`] if the module or the options are not valid.
    #[track_caller]
    pub fn start(&self, input: O::Input) -> Running<O> {
        let started = self.start_checked().and_then(|()| self.encode(&input));
        match started.and_then(|input| Running::begin(&self.spec, input)) {
            Ok(running) => running,
            Err(trouble) => panic!("{trouble}"),
        }
    }

    /// Replays all histories of a run a little later, so that a clock in the code shows another time.
    #[allow(clippy::disallowed_methods, reason = "only real time changes a clock in the code")]
    fn replay(&self, test_run: &TestRun, run: &Run<O>) -> Result<(), Trouble> {
        let Some(build) = test_run.shared.state().build.clone().filter(|_| self.spec.checks_replay) else {
            return Ok(());
        };
        // Clocks in code are mostly read in milliseconds.
        std::thread::sleep(Duration::from_millis(1));
        let report = ReplayReport::of_run(&build, &run.histories);
        match report.divergences.first() {
            Some(divergence) => Err(Trouble::NotDeterministic(divergence.to_string())),
            None => Ok(()),
        }
    }

    pub(crate) fn start_checked(&self) -> Result<(), Trouble> {
        match tokio::runtime::Handle::try_current() {
            Ok(_) => Err(Trouble::Start(
                "a test has a tokio runtime of its own: write a plain `#[test] fn`, not `#[tokio::test] async fn`".to_string(),
            )),
            Err(_) => Ok(()),
        }
    }

    pub(crate) fn encode(&self, input: &O::Input) -> Result<String, Trouble> {
        let text = input.encode(self.spec.options(RuntimeOptions::default()).codec);
        text.map_err(|error| Trouble::Start(format!("the input of '{}' does not encode: {error}", O::NAME)))
    }
}

/// A message, or a reference to one: the parameter of [`Test::send_at`]. `Kind` keeps the two implementations apart.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no message that `{O}` accepts",
    note = "derive it (`#[derive(Serialize, Deserialize, outlast::Message)]`), and name it in `accepts(..)` of the orchestration"
)]
pub trait ToSend<O, Kind> {
    /// The type of the message.
    type Message: Message + AcceptedBy<O>;

    /// The message.
    fn message(&self) -> &Self::Message;
}

/// The kind of a message that is passed by value.
#[derive(Debug)]
pub enum ByValue {}

/// The kind of a message that is passed by reference.
#[derive(Debug)]
pub enum ByReference {}

impl<O, M: Message + AcceptedBy<O>> ToSend<O, ByValue> for M {
    type Message = M;

    fn message(&self) -> &M {
        self
    }
}

impl<O, M: Message + AcceptedBy<O>> ToSend<O, ByReference> for &M {
    type Message = M;

    fn message(&self) -> &M {
        self
    }
}

/// Values in the order in which a fake of the outside world got them: a simple [`Test::world`].
#[derive(Debug)]
pub struct Ledger<T>(Arc<Mutex<Vec<T>>>);

impl<T> Ledger<T> {
    /// Adds a value.
    pub fn add(&self, value: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(value);
    }
}

impl<T: Clone> Ledger<T> {
    /// All values.
    pub fn all(&self) -> Vec<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<T> Clone for Ledger<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Ledger<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}
