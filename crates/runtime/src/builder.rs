//! Starting a runtime with every mistake named, instead of a panic for the first.

use crate::options::{OptionProblem, RuntimeOptions};
use crate::registry::{
    ActivityRegistry, ActivityRegistryBuilder, OrchestrationRegistry, OrchestrationRegistryBuilder,
};
use crate::runtime::Runtime;
use outlast_provider::Provider;
use std::fmt;
use std::sync::Arc;

/// Collects what a runtime needs. Made by [`Runtime::builder`].
#[derive(Default)]
pub struct RuntimeBuilder {
    store: Option<Arc<dyn Provider>>,
    activities: ActivityRegistry,
    orchestrations: OrchestrationRegistry,
    options: RuntimeOptions,
    problems: Vec<String>,
}

/// Why a runtime was not started: everything that is wrong, not only the first thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartError {
    /// One sentence each.
    pub problems: Vec<String>,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the runtime was not started: {}", self.problems.join("; "))
    }
}

impl std::error::Error for StartError {}

impl Runtime {
    /// Begins to put a runtime together.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }
}

impl RuntimeBuilder {
    /// Where histories and queues are kept. The only thing that has no default.
    pub fn store(mut self, store: Arc<dyn Provider>) -> Self {
        self.store = Some(store);
        self
    }

    /// The activities that this runtime runs.
    pub fn activities(mut self, activities: ActivityRegistry) -> Self {
        self.activities = activities;
        self
    }

    /// The activities that this runtime runs; what went wrong while they were registered keeps the runtime from starting.
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

    /// The orchestrations that this runtime runs; what went wrong while they were registered keeps the runtime from
    /// starting.
    pub fn register_orchestrations(mut self, builder: OrchestrationRegistryBuilder) -> Self {
        match builder.build_result() {
            Ok(orchestrations) => self.orchestrations = orchestrations,
            Err(problems) => self.problems.push(problems),
        }
        self
    }

    /// How the runtime behaves.
    pub fn options(mut self, options: RuntimeOptions) -> Self {
        self.options = options;
        self
    }

    /// Starts the runtime, on the tokio runtime that this is awaited on.
    ///
    /// Cancellation safety: a dropped call has started nothing, or a runtime that runs on.
    pub async fn start(self) -> Result<Arc<Runtime>, StartError> {
        let mut problems = self.problems;
        if let Err(wrong) = self.options.validate() {
            problems.extend(wrong.iter().map(OptionProblem::to_string));
        }
        if tokio::runtime::Handle::try_current().is_err() {
            problems.push(
                "no tokio runtime: await this inside of one, for example under #[tokio::main]".to_string(),
            );
        }
        match self.store {
            None => problems.push("no store: call store() with, for example, a SqliteProvider".to_string()),
            Some(store) if problems.is_empty() => {
                return Ok(Runtime::launch(store, self.activities, self.orchestrations, self.options).await);
            }
            Some(_) => {}
        }
        Err(StartError { problems })
    }
}
