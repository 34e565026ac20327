//! A test without its types: everything that a run needs.

use outlast_runtime::{Client, Module, RuntimeOptions};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Adds mocks or states to a module.
pub(crate) type Extend = Arc<dyn Fn(Module) -> Module + Send + Sync>;

/// A future that a run awaits.
pub(crate) type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The code of an action. It gets the id of the instance.
pub(crate) type Act = dyn Fn(Client, String) -> Work<Result<(), String>> + Send + Sync;

/// An action of the test at a virtual time.
#[derive(Clone)]
pub(crate) struct Action {
    pub(crate) at: Duration,
    /// The action after "the test", for the timeline.
    pub(crate) words: String,
    pub(crate) run: Arc<Act>,
}

/// The outside world of one run: its value as a state of activities, and its text for comparisons.
pub(crate) struct Outside {
    pub(crate) install: Extend,
    pub(crate) observe: Box<dyn Fn() -> String + Send>,
}

#[derive(Clone)]
pub(crate) struct Spec {
    pub(crate) orchestration: &'static str,
    pub(crate) version: Option<&'static str>,
    pub(crate) instance: String,
    pub(crate) module: Module,
    /// The mocks of activities by name, applied once in each run: their counts live as long as the run.
    pub(crate) mocks: BTreeMap<&'static str, Extend>,
    /// The mocks of children by name.
    pub(crate) child_mocks: BTreeMap<&'static str, Extend>,
    /// Applied at each start of a process: states that a crash loses.
    pub(crate) per_process: Vec<Extend>,
    pub(crate) outside: Vec<Arc<dyn Fn() -> Outside + Send + Sync>>,
    pub(crate) actions: Vec<Action>,
    pub(crate) limit: Duration,
    pub(crate) most_calls: u64,
    pub(crate) settle: Duration,
    pub(crate) configure: Vec<Arc<dyn Fn(RuntimeOptions) -> RuntimeOptions + Send + Sync>>,
    pub(crate) checks_replay: bool,
    pub(crate) holds_clock: bool,
}

impl Spec {
    pub(crate) fn options(&self, quiet: RuntimeOptions) -> RuntimeOptions {
        self.configure.iter().fold(quiet, |options, configure| configure(options))
    }
}
