//! Starts a runtime, or returns all errors in its options and registries.

use crate::check::{Build, answer_and_exit};
use crate::module::Module;
use crate::options::{OptionProblem, RuntimeOptions};
use crate::registry::{
    ActivityRegistry, ActivityRegistryBuilder, OrchestrationRegistry, OrchestrationRegistryBuilder,
};
use crate::runtime::Runtime;
use outlast_provider::Provider;
use std::fmt;
use std::sync::Arc;

/// Builds a runtime from a store, registries and options. Created by [`Runtime::builder`].
#[derive(Default)]
pub struct RuntimeBuilder {
    store: Option<Arc<dyn Provider>>,
    activities: ActivityRegistry,
    orchestrations: OrchestrationRegistry,
    options: RuntimeOptions,
    problems: Vec<String>,
    module: Module,
}

/// The reasons for which a runtime was not started.
#[derive(Clone, PartialEq, Eq)]
pub struct StartError {
    /// All problems, one sentence each.
    pub problems: Vec<String>,
}

/// Prints the sentence of `Display`, because `unwrap` and a `main` that returns an error print `Debug`.
impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StartError").field(&self.to_string()).finish()
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the runtime was not started: {}", self.problems.join("; "))
    }
}

impl std::error::Error for StartError {}

impl Runtime {
    /// A builder with default options and without a store.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }
}

impl RuntimeBuilder {
    /// The store of histories and queues. Required.
    pub fn store(mut self, store: Arc<dyn Provider>) -> Self {
        self.store = Some(store);
        self
    }

    /// The activities that this runtime runs.
    pub fn activities(mut self, activities: ActivityRegistry) -> Self {
        self.activities = activities;
        self
    }

    /// The activities that this runtime runs. [`RuntimeBuilder::start`] returns the errors of their registration.
    pub fn register_activities(mut self, builder: ActivityRegistryBuilder) -> Self {
        match builder.build_result() {
            Ok(activities) => self.activities = activities,
            Err(problems) => self.problems.push(problems),
        }
        self
    }

    /// The orchestrations that this runtime runs.
    pub fn orchestrations(mut self, orchestrations: OrchestrationRegistry) -> Self {
        self.orchestrations = orchestrations;
        self
    }

    /// The orchestrations that this runtime runs. [`RuntimeBuilder::start`] returns the errors of their registration.
    pub fn register_orchestrations(mut self, builder: OrchestrationRegistryBuilder) -> Self {
        match builder.build_result() {
            Ok(orchestrations) => self.orchestrations = orchestrations,
            Err(problems) => self.problems.push(problems),
        }
        self
    }

    /// Adds the activities and orchestrations of a module. [`RuntimeBuilder::start`] returns the errors of their registration.
    pub fn register(mut self, module: Module) -> Self {
        self.module = self.module.with(module);
        self
    }

    /// Adds a value for activities with a parameter [`State<T>`](crate::State). The runtime has one value of each type.
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.module = self.module.state(value);
        self
    }

    /// The options of the runtime.
    pub fn options(mut self, options: RuntimeOptions) -> Self {
        self.options = options;
        self
    }

    /// Answers `outlast check`, if that command started this process, and ends the process. In any other process the call has no
    /// effect.
    ///
    /// The command replays the histories of a store with the orchestrations of this program. [`RuntimeBuilder::start`] and the other
    /// ways to start a runtime answer the command too: call this method before the program opens its store, so that a check needs no
    /// store and changes none.
    ///
    /// ```no_run
    /// # use outlast_runtime::{Module, Runtime, StartError};
    /// # async fn open() -> std::sync::Arc<dyn outlast_provider::Provider> { unimplemented!() }
    /// # async fn run(module: Module) -> Result<(), StartError> {
    /// let runtime = Runtime::builder().register(module).answer_check();
    /// let runtime = runtime.store(open().await).start().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn answer_check(self) -> Self {
        answer_and_exit(|| {
            let module = self.module.clone().without_activities();
            let (_, orchestrations, problems) =
                module.register(&ActivityRegistry::default(), &self.orchestrations);
            // `start` returns the problems.
            (problems.is_empty() && self.problems.is_empty())
                .then(|| Build::new(orchestrations, &self.options))
        });
        self
    }

    /// Starts the runtime on the current tokio runtime.
    ///
    /// In a process that `outlast check` started, `start` answers the command and ends the process, see
    /// [`RuntimeBuilder::answer_check`].
    ///
    /// Cancellation safety: when the future is dropped, the runtime is started or not; a started runtime keeps running.
    pub async fn start(self) -> Result<Arc<Runtime>, StartError> {
        let mut problems = self.problems;
        let (activities, orchestrations, invalid) =
            self.module.register(&self.activities, &self.orchestrations);
        problems.extend(invalid);
        if let Err(invalid) = self.options.validate() {
            problems.extend(invalid.iter().map(OptionProblem::to_string));
        }
        if tokio::runtime::Handle::try_current().is_err() {
            problems.push(
                "no tokio runtime: await `start` inside a tokio runtime, for example under #[tokio::main]"
                    .to_string(),
            );
        }
        match self.store {
            None => problems.push("no store: call store() with, for example, a SqliteProvider".to_string()),
            Some(store) if problems.is_empty() => {
                return Ok(Runtime::launch(store, activities, orchestrations, self.options).await);
            }
            Some(_) => {}
        }
        Err(StartError { problems })
    }
}
