//! One execution in memory: its suspended code and the summary of its history.

use crate::context::{Identity, OrchestrationContext};
use crate::decide::Runaway;
use crate::history_summary::HistorySummary;
use crate::op::kv::KvValue;
use crate::op::{Op, Role};
use crate::opening::{Opening, Past};
use crate::replay_error::Mismatch;
use crate::state::State;
use crate::version::Rules;
use crate::wake::RootWaker;
use outlast_model::codec::Codec;
use outlast_model::limits::Limits;
use outlast_model::{AppErrorKind, ErrorDetails, Event};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The future of the orchestration function.
pub type Code = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// The parts of an execution.
pub struct Setup {
    /// The instance.
    pub instance: String,
    /// The execution.
    pub execution_id: u64,
    /// The start of the execution; its version is the version that runs.
    pub opening: Opening,
    /// The stamp of the first event, stored or to be written.
    pub stamp: String,
    /// The key-value state at the end of the previous execution.
    pub kv: BTreeMap<String, KvValue>,
    /// Limits for new decisions.
    pub limits: Arc<Limits>,
}

/// Reads the last durable call of code whose poll does not return, for watchdogs.
pub struct Probe(OrchestrationContext);

impl Probe {
    /// The name and the place of the last durable call.
    pub fn last_call(&self) -> Option<String> {
        self.0.lock().last_call.map(|(call, site)| format!("{call} at {site}"))
    }
}

/// One execution in memory.
pub struct Execution {
    pub(crate) context: OrchestrationContext,
    pub(crate) opening: Opening,
    pub(crate) stamp: String,
    pub(crate) summary: HistorySummary,
    pub(crate) waker: RootWaker,
    code: Option<Code>,
    pub(crate) returned: Option<Result<String, String>>,
    /// Pairs of event and token of a decision, in ascending order of events.
    pub(crate) tokens: Vec<(u64, u64)>,
    /// The last event gave the code a reason to run.
    pub(crate) due: bool,
    /// The last applied event.
    pub(crate) applied: u64,
    /// The last applied event was stored before this turn.
    pub(crate) after_stored: bool,
    /// Number of futures that the code had dropped before the poll in which it ended.
    pub(crate) dropped_before_end: usize,
    /// Stored notes of dropped futures that the code has not dropped yet, with the name of their operation.
    pub(crate) undropped: BTreeMap<u64, &'static str>,
    pub(crate) turns: u64,
    /// A report of this execution has said that its code awaits nothing.
    pub(crate) has_warned: bool,
    /// The reason of a request that ends the execution whatever its code does.
    pub(crate) terminated: Option<String>,
}

impl Execution {
    /// Calls the orchestration function. Its future is not polled yet.
    pub fn new(
        setup: Setup,
        call: impl FnOnce(OrchestrationContext, String) -> Code,
    ) -> Result<Self, ErrorDetails> {
        let input = setup.opening.input.clone();
        let mut execution = Self::without_code(setup);
        let context = execution.context.clone();
        let called = catch_unwind(AssertUnwindSafe(|| call(context, input)));
        let code = called.map_err(|payload| {
            let (kind, message) = (AppErrorKind::Panicked, panic_message(payload));
            ErrorDetails::Application { kind, message, retryable: false }
        })?;
        execution.code = Some(code);
        Ok(execution)
    }

    /// An execution whose function is not called, for an instance that ends without running its code.
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
            summary: HistorySummary::default(),
            waker: RootWaker::new(),
            code: None,
            returned: None,
            tokens: Vec::new(),
            due: true,
            applied: 0,
            after_stored: false,
            dropped_before_end: 0,
            undropped: BTreeMap::new(),
            turns: 0,
            has_warned: false,
            terminated: None,
        }
    }

    /// Sets the codec for typed values. The first call counts.
    pub fn with_codec(self, codec: Codec) -> Self {
        self.context.set_codec(codec);
        self
    }

    /// The history that will be replayed had an ending, which it is replayed without: code that asks for a patch made a decision
    /// after it.
    pub fn with_ended_history(self) -> Self {
        self.context.lock().history_ended = true;
        self
    }

    /// The error that the code returned in a turn that failed for another reason.
    pub fn returned_error(&self) -> Option<&str> {
        self.returned.as_ref()?.as_ref().err().map(String::as_str)
    }

    /// The instance.
    pub fn instance(&self) -> &str {
        &self.context.identity().instance
    }

    /// The execution.
    pub fn execution_id(&self) -> u64 {
        self.context.identity().execution_id
    }

    /// The last event of the execution. An execution in memory is current if the store names the same event.
    pub fn last_event_id(&self) -> u64 {
        self.summary.last_event_id
    }

    /// Whether the history has a terminal event.
    pub fn has_ended(&self) -> bool {
        self.summary.ended.is_some()
    }

    /// The open activities by their scheduling events, if there is no open child. Timers and waits for
    /// events do not count: most of them end without an outcome.
    pub fn waits_for_activities(&self) -> Option<&BTreeSet<u64>> {
        Some(self.summary.activities.ids()).filter(|_| self.summary.children.is_empty())
    }

    /// The name of the orchestration.
    pub fn orchestration_name(&self) -> &str {
        &self.opening.name
    }

    /// An estimate of the execution's memory in bytes.
    pub fn bytes(&self) -> usize {
        const PER_EVENT: usize = 160;
        let state = self.context.lock();
        let keys: usize = state.kv.iter().map(|(key, entry)| key.len() + entry.value.len()).sum();
        let status = state.custom_status.as_ref().map_or(0, String::len);
        4_096 + self.summary.events * PER_EVENT + self.summary.bytes + keys + status
    }

    /// A probe that another thread can read while the code runs.
    pub fn probe(&self) -> Probe {
        Probe(self.context.clone())
    }

    /// The key-value state as the code sees it. A successor begins with it.
    pub fn keys(&self) -> BTreeMap<String, KvValue> {
        self.context.lock().kv.clone()
    }

    /// The patches that the code asked for, and whether this execution takes them.
    pub fn patches(&self) -> BTreeMap<String, bool> {
        self.context.lock().patch_answers()
    }

    /// The place of the call that made a decision, if the decision has a future.
    pub fn site_of(&self, event_id: u64) -> Option<&'static Location<'static>> {
        let token = self.token(event_id)?;
        Some(self.context.lock().future_state(token).site)
    }

    /// The past of the instance, for [`admit`](crate::admit) of the next batch. After the first turn, the opening lacks the
    /// input and the carried messages.
    pub fn past(&self) -> Past {
        Past { opening: Some(self.opening.clone()), ended: self.summary.ended.clone() }
    }

    /// Frees the input and the carried messages, which only the first turn needs.
    pub(crate) fn forget_input(&mut self) {
        (self.opening.input, self.opening.carried) = (String::new(), Vec::new());
    }

    pub(crate) fn identity(&self) -> &Identity {
        self.context.identity()
    }

    /// Enters the stored decisions that the code has to make again.
    pub(crate) fn expect_history(&mut self, history: &[Event]) {
        let mut state = self.context.lock();
        for event in history {
            if let Some((op, Role::Decision)) = Op::of_event(&event.kind)
                && !state.expect_marker(&event.kind)
            {
                state.ahead.push_back(op.stored_time(&event.kind));
            }
        }
        drop(state);
        self.after_stored = !history.is_empty();
    }

    // -- the code ----------------------------------------------------------------------------------------------------

    pub(crate) fn is_running(&self) -> bool {
        self.code.is_some()
    }

    /// Polls the code, if it has a reason to run, until it waits.
    pub(crate) fn poll_if_due(&mut self) -> Result<(), Stop> {
        if self.due {
            self.context.lock().legacy_wakers().into_iter().for_each(Waker::wake);
        }
        let mut polls = 0;
        while self.code.is_some() && (std::mem::take(&mut self.due) | self.waker.take_woken()) {
            if polls == MOST_POLLS {
                let last = self.context.lock().last_call;
                return Err(Stop::Mismatch(Mismatch::never_rests(self.identity(), self.applied, last)));
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
        let mut cx = Context::from_waker(self.waker.get());
        let polled = catch_unwind(AssertUnwindSafe(|| code.as_mut().poll(&mut cx)));
        match polled {
            Ok(Poll::Pending) => Ok(()),
            Ok(Poll::Ready(result)) => {
                self.returned = Some(result);
                self.drop_code().map_err(Stop::Panicked)
            }
            Err(payload) if payload.is::<Runaway>() => Err(Stop::Limit),
            Err(payload) => Err(Stop::Panicked(panic_message(payload))),
        }
    }

    /// Drops the future of the code with its locals, whose destructors may panic.
    fn drop_code(&mut self) -> Result<(), String> {
        let code = self.code.take();
        catch_unwind(AssertUnwindSafe(|| drop(code))).map_err(panic_message)
    }
}

/// The limit of polls between two events. Code that wakes itself this often never waits.
const MOST_POLLS: usize = 100_000;

/// The reason why the code of a turn cannot go on.
pub(crate) enum Stop {
    Mismatch(Mismatch),
    /// With the panic message.
    Panicked(String),
    /// The state holds the violation.
    Limit,
}

/// The message of a panic.
fn panic_message(payload: Box<dyn Any + Send>) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    let message = text.unwrap_or_else(|| "orchestration panicked".to_string());
    // The destructor of the payload may panic.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    message
}

impl Drop for Execution {
    /// Futures that are dropped with the execution decide nothing. Destructors of the code may panic.
    fn drop(&mut self) {
        let _ = self.drop_code();
    }
}
