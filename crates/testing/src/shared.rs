//! The state of one run, which outlives the processes of the run.

use crate::bodies::Body;
use crate::cold::{Build, Turn};
use crate::fault::{ActivityFault, CallFault, Moment};
use crate::poll_gate::PollGate;
use crate::probe::Probe;
use crate::profile::Draws;
use crate::story;
use crate::time::{EPOCH_MS, RunClock};
use crate::trouble::Trouble;
use outlast_memory::MemoryProvider;
use outlast_provider::{Clock, Entropy, Provider};
use outlast_runtime::Client;
use outlast_runtime::lens::span;
use outlast_runtime::registry::ActivityRegistry;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

pub(crate) struct Shared {
    /// The instance of the test.
    instance: String,
    pub(crate) store: Arc<MemoryProvider>,
    pub(crate) clock: Arc<RunClock>,
    pub(crate) entropy: Arc<Draws>,
    pub(crate) calls: Probe<Moment, CallFault>,
    /// Whether every turn runs again from a cold start.
    pub(crate) checks_replay: bool,
    /// The most calls to the store. Virtual time does not advance in a loop that never waits; this limit ends such a loop.
    most_calls: u64,
    /// Notified when a fault of a call crashes the process.
    pub(crate) kill: Notify,
    /// Notified when the run has met trouble.
    pub(crate) failed: Notify,
    /// Notified when the body of an activity has ended.
    pub(crate) body_ended: Notify,
    state: Mutex<State>,
}

/// The object of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leased {
    Turn,
    Activity,
}

#[derive(Default)]
pub(crate) struct State {
    /// Leases of the process, by token.
    pub(crate) held: BTreeMap<String, Leased>,
    /// Turns that the process runs, by token.
    pub(crate) turns: BTreeMap<String, Turn>,
    pub(crate) bodies: Vec<Body>,
    /// The number of bodies that run.
    pub(crate) running_bodies: usize,
    /// Whether the sweep has cancelled the instance.
    pub(crate) is_cancelled: bool,
    /// Idempotency keys in the order in which their bodies began.
    pub(crate) keys: Vec<String>,
    /// The activity with this number fails, in the order of keys.
    pub(crate) failing: Option<(usize, ActivityFault)>,
    pub(crate) build: Option<Build>,
    pub(crate) activities: ActivityRegistry,
    pub(crate) actions_done: Vec<bool>,
    /// The gate of the current process.
    pub(crate) gate: Option<Arc<PollGate>>,
    calls: u64,
    trouble: Option<Trouble>,
    /// `None` if the run is not traced.
    trace: Option<Vec<String>>,
}

impl Shared {
    pub(crate) fn new(
        instance: &str,
        target: Option<(usize, CallFault)>,
        checks_replay: bool,
        most_calls: u64,
        is_traced: bool,
    ) -> Arc<Self> {
        let clock = Arc::new(RunClock::new());
        let entropy = Arc::new(Draws::default());
        let of_store = Arc::new(Draws::default());
        let store = MemoryProvider::with_parts(
            Arc::<RunClock>::clone(&clock) as Arc<dyn Clock>,
            of_store as Arc<dyn Entropy>,
        );
        let state = State { trace: is_traced.then(Vec::new), ..State::default() };
        Arc::new(Self {
            instance: instance.to_string(),
            store: Arc::new(store),
            clock,
            entropy,
            calls: Probe::new(target),
            checks_replay,
            most_calls,
            kill: Notify::new(),
            failed: Notify::new(),
            body_ended: Notify::new(),
            state: Mutex::new(state),
        })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels the instance of the test, as a client does.
    pub(crate) async fn cancel(&self) {
        self.note(|| "CANCEL: a client cancels the instance".to_string());
        self.state().is_cancelled = true;
        let client = Client::new(Arc::<MemoryProvider>::clone(&self.store) as Arc<dyn Provider>);
        if let Err(error) = client.cancel_instance(&self.instance, "the test cancels the instance").await {
            self.fail(Trouble::Action(format!("the test cancels the instance, and that failed: {error}")));
        }
    }

    /// Waits until no body of an activity runs, at most this virtual time.
    pub(crate) async fn bodies_end(&self, limit: Duration) {
        let all_end = async {
            loop {
                let ended = self.body_ended.notified();
                if self.state().running_bodies == 0 {
                    return;
                }
                ended.await;
            }
        };
        // A body that never ends does not keep the run from its end.
        let _ = tokio::time::timeout(limit, all_end).await;
    }

    /// Virtual time since the run began. Call it inside the tokio runtime of a process.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        self.clock.now_ms().saturating_sub(EPOCH_MS)
    }

    /// Adds a line to the trace.
    pub(crate) fn note(&self, text: impl FnOnce() -> String) {
        let now = self.elapsed_ms();
        if let Some(trace) = &mut self.state().trace {
            trace.push(format!("{:>8}  {}", span(now), story::without_guids(&text())));
        }
    }

    pub(crate) fn trace(&self) -> Vec<String> {
        self.state().trace.clone().unwrap_or_default()
    }

    /// Ends the run. The first trouble counts.
    pub(crate) fn fail(&self, trouble: Trouble) {
        let text = trouble.to_string();
        self.note(|| text);
        self.state().trouble.get_or_insert(trouble);
        self.failed.notify_one();
    }

    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.state().trouble.clone()
    }

    /// Counts a call to the store.
    pub(crate) fn count_call(&self) {
        let is_runaway = {
            let mut state = self.state();
            state.calls += 1;
            state.calls > self.most_calls
        };
        if is_runaway {
            let days = span(self.elapsed_ms());
            self.fail(Trouble::Runaway(format!(
                "the run made {} calls to the store in {days} of virtual time and has not ended: does the orchestration loop \
                 without end? `.call_limit(..)` changes the number",
                self.most_calls
            )));
        }
    }
}
