//! One execution in memory: its suspended code, and what its history adds up to.

use crate::context::{Identity, OrchestrationContext};
use crate::decide::Runaway;
use crate::ledger::Ledger;
use crate::mismatch::Mismatch;
use crate::op;
use crate::op::kv::KvValue;
use crate::opening::{Opening, Past};
use crate::state::State;
use crate::version::Rules;
use crate::wake::Alarm;
use outlast_model::codec::Codec;
use outlast_model::limits::Limits;
use outlast_model::{AppErrorKind, ErrorDetails, Event, EventKind};
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The author's function, called and suspended.
pub type Code = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// What an execution is made of.
pub struct Setup {
    /// The instance.
    pub instance: String,
    /// The execution.
    pub execution_id: u64,
    /// What began it; its version is the one that runs.
    pub opening: Opening,
    /// The stamp of its first event, or the one to be written.
    pub stamp: String,
    /// Key-value state that earlier executions left.
    pub kv: BTreeMap<String, KvValue>,
    /// Limits for new decisions.
    pub limits: Arc<Limits>,
}

/// What a watchdog can learn about code that does not come back.
pub struct Probe(OrchestrationContext);

impl Probe {
    /// The last durable call that the code made, and where.
    pub fn last_call(&self) -> Option<String> {
        self.0.lock().last_call.map(|(call, site)| format!("{call} at {site}"))
    }
}

/// One execution in memory.
pub struct Execution {
    pub(crate) context: OrchestrationContext,
    pub(crate) opening: Opening,
    pub(crate) stamp: String,
    pub(crate) ledger: Ledger,
    pub(crate) alarm: Alarm,
    code: Option<Code>,
    pub(crate) returned: Option<Result<String, String>>,
    /// Which future belongs to which scheduling event, in ascending order of events.
    pub(crate) tokens: Vec<(u64, u64)>,
    /// The last event gave the code reason to run.
    pub(crate) due: bool,
    /// The event that was applied last.
    pub(crate) applied: u64,
    /// That event is stored, so what the code does because of it was done before.
    pub(crate) after_stored: bool,
    /// How many futures the code had dropped before the poll that ended it.
    pub(crate) dropped_before_end: usize,
    /// Stored notes of dropped futures that this run has not dropped (yet), with their kind.
    pub(crate) undropped: BTreeMap<u64, &'static str>,
    pub(crate) turns: u64,
    pub(crate) warned_parked: bool,
}

impl Execution {
    /// Calls the author's function, which runs no code yet.
    pub fn new(
        setup: Setup,
        call: impl FnOnce(OrchestrationContext, String) -> Code,
    ) -> Result<Self, ErrorDetails> {
        let input = setup.opening.input.clone();
        let mut execution = Self::without_code(setup);
        let context = execution.context.clone();
        let called = catch_unwind(AssertUnwindSafe(|| call(context, input)));
        let code = called.map_err(|payload| {
            let (kind, message) = (AppErrorKind::Panicked, last_words(payload));
            ErrorDetails::Application { kind, message, retryable: false }
        })?;
        execution.code = Some(code);
        Ok(execution)
    }

    /// An execution whose code is not called: for an instance that ends before its first turn.
    pub fn without_code(setup: Setup) -> Self {
        let (rules, _) = Rules::of_stamp(&setup.stamp);
        let state = State::new(rules, setup.limits, setup.kv, setup.opening.custom_status.clone());
        let identity = Identity {
            instance: setup.instance,
            execution_id: setup.execution_id,
            name: setup.opening.name.clone(),
            version: setup.opening.version.clone().unwrap_or_default(),
        };
        Self {
            context: OrchestrationContext::new(identity, state),
            opening: setup.opening,
            stamp: setup.stamp,
            ledger: Ledger::default(),
            alarm: Alarm::new(),
            code: None,
            returned: None,
            tokens: Vec::new(),
            due: true,
            applied: 0,
            after_stored: false,
            dropped_before_end: 0,
            undropped: BTreeMap::new(),
            turns: 0,
            warned_parked: false,
        }
    }

    /// Writes typed values in another form than the contract's.
    pub fn with_codec(self, codec: Codec) -> Self {
        self.context.lock().codec = codec;
        self
    }

    /// The instance.
    pub fn instance(&self) -> &str {
        &self.context.identity().instance
    }

    /// The execution.
    pub fn execution_id(&self) -> u64 {
        self.context.identity().execution_id
    }

    /// The last event that it knows of. A copy in memory is good if the store says the same.
    pub fn last_event_id(&self) -> u64 {
        self.ledger.last_event_id
    }

    /// Whether its history has a terminal event.
    pub fn has_ended(&self) -> bool {
        self.ledger.ended.is_some()
    }

    /// Whether the outcome of this activity is all that its calls to others still have to bring. Timers and events do not count:
    /// most of those that are waited for never come.
    pub fn waits_only_for(&self, activity_id: u64) -> bool {
        let Ledger { open_activities, open_children, .. } = &self.ledger;
        open_children.is_empty() && open_activities.len() == 1 && open_activities.contains(&activity_id)
    }

    /// The name of its orchestration.
    pub fn orchestration_name(&self) -> &str {
        &self.opening.name
    }

    /// Roughly what it takes in memory.
    pub fn bytes(&self) -> usize {
        const PER_EVENT: usize = 160;
        let state = self.context.lock();
        let keys: usize = state.kv.iter().map(|(key, entry)| key.len() + entry.value.len()).sum();
        let status = state.custom_status.as_ref().map_or(0, String::len);
        4_096 + self.ledger.events * PER_EVENT + self.ledger.bytes + keys + status
    }

    /// Looks at the code from outside while it runs.
    pub fn probe(&self) -> Probe {
        Probe(self.context.clone())
    }

    /// The key-value store as the code sees it: what a successor begins with.
    pub fn keys(&self) -> BTreeMap<String, KvValue> {
        self.context.lock().kv.clone()
    }

    /// What is known of the instance, for the sorting of the next batch. Input and messages that were carried over are in
    /// the history, and with the code; they are left out here.
    pub fn past(&self) -> Past {
        Past { opening: Some(self.opening.clone()), ended: self.ledger.ended.clone() }
    }

    /// Only the first turn needs them, and a suspended execution should not take more memory than it must.
    pub(crate) fn forget_input(&mut self) {
        (self.opening.input, self.opening.carried) = (String::new(), Vec::new());
    }

    pub(crate) fn who(&self) -> &Identity {
        self.context.identity()
    }

    /// Tells the code which stored decisions lie ahead of it.
    pub(crate) fn expect_history(&mut self, history: &[Event]) {
        let decisions = history.iter().filter(|event| op::is_decision(&event.kind));
        self.context.lock().ahead.extend(decisions.map(|event| match &event.kind {
            EventKind::KeyValueSet { last_updated_at_ms, .. } => Some(*last_updated_at_ms),
            _ => None,
        }));
        self.after_stored = !history.is_empty();
    }

    // -- the code ----------------------------------------------------------------------------------------------------

    pub(crate) fn is_running(&self) -> bool {
        self.code.is_some()
    }

    /// Runs the code if it has reason to, until it rests.
    pub(crate) fn poll_if_due(&mut self) -> Result<(), Stop> {
        if self.due {
            self.context.lock().legacy_wakers().into_iter().for_each(Waker::wake);
        }
        let mut polls = 0;
        while self.code.is_some() && (std::mem::take(&mut self.due) | self.alarm.take_woken()) {
            if polls == MOST_POLLS {
                let last = self.context.lock().last_call;
                return Err(Stop::Mismatch(Mismatch::never_rests(self.who(), self.applied, last)));
            }
            polls += 1;
            self.poll()?;
        }
        Ok(())
    }

    fn poll(&mut self) -> Result<(), Stop> {
        let Some(code) = &mut self.code else { return Ok(()) };
        {
            let mut state = self.context.lock();
            state.replaying = self.after_stored;
            if state.successor.is_none() {
                self.dropped_before_end = state.dropped.len();
            }
        }
        let mut cx = Context::from_waker(self.alarm.waker());
        let polled = catch_unwind(AssertUnwindSafe(|| code.as_mut().poll(&mut cx)));
        match polled {
            Ok(Poll::Pending) => Ok(()),
            Ok(Poll::Ready(result)) => {
                self.returned = Some(result);
                self.drop_code().map_err(Stop::Panicked)
            }
            Err(payload) if payload.is::<Runaway>() => Err(Stop::Limit),
            Err(payload) => Err(Stop::Panicked(last_words(payload))),
        }
    }

    /// Its locals go with it, and a destructor of the author's may panic.
    fn drop_code(&mut self) -> Result<(), String> {
        let code = self.code.take();
        catch_unwind(AssertUnwindSafe(|| drop(code))).map_err(last_words)
    }
}

/// Polls between two events. Code that is woken by itself this often waits by asking again and again.
const MOST_POLLS: usize = 100_000;

/// Why a turn's code cannot go on.
pub(crate) enum Stop {
    Mismatch(Mismatch),
    /// With what the panic said.
    Panicked(String),
    /// The violation is in the state.
    Limit,
}

/// What a panic said.
fn last_words(payload: Box<dyn Any + Send>) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    let message = text.unwrap_or_else(|| "orchestration panicked".to_string());
    // The payload's own destructor is the author's code.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    message
}

impl Drop for Execution {
    /// Throwing a copy away decides nothing: nobody asks what its futures did. Its destructors may panic.
    fn drop(&mut self) {
        let _ = self.drop_code();
    }
}
