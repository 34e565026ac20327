//! One run: an instance, its store, and the processes that run it one after the other.

use crate::bodies;
use crate::cold::Build;
use crate::fault::{Schedule, Target};
use crate::poll_gate::PollGate;
use crate::profile;
use crate::shared::Shared;
use crate::spec::{Outside, Spec};
use crate::store::{ProcessStore, expire};
use crate::time::{EPOCH_MS, RunClock};
use crate::trouble::Trouble;
use crate::virtual_time;
use outlast_model::ExecutionStatus;
use outlast_provider::{Clock, Interest, Provider, saturating_ms};
use outlast_runtime::lens::{Operation, open_operations, span};
use outlast_runtime::{Client, Module, Runtime};
use std::sync::Arc;
use std::time::Duration;

/// Rounds of all tasks after the end of the instance, in which other instances go on without virtual time.
const LAST_ROUNDS: usize = 256;

/// The virtual time in which the bodies of a cancelled instance end.
const LAST_BODIES: Duration = crate::hours(1);

/// A run, between and in its processes.
pub(crate) struct TestRun {
    pub(crate) spec: Spec,
    pub(crate) shared: Arc<Shared>,
    module: Module,
    outside: Vec<Outside>,
    schedule: Option<Schedule>,
    /// The number of processes that have begun.
    processes: u64,
    /// The polls of the first process.
    pub(crate) first_gate: Option<Arc<PollGate>>,
}

/// A process: a runtime of Outlast on a tokio runtime of its own. Dropping it is a crash: every task ends.
pub(crate) struct Process {
    pub(crate) tokio: tokio::runtime::Runtime,
    gate: Arc<PollGate>,
    pub(crate) client: Client,
    _node: Arc<Runtime>,
}

/// The end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The instance has ended.
    Done,
    Crashed,
    /// The run has met trouble, which it has recorded.
    Failed,
}

impl TestRun {
    /// A run of a test. With a schedule it has one fault; every turn is replayed in runs without a fault only.
    pub(crate) fn new(spec: &Spec, schedule: Option<Schedule>, is_traced: bool) -> Self {
        let target = schedule.as_ref().map(|schedule| schedule.target);
        let call = match target {
            Some(Target::Call(at, fault)) => Some((at, fault)),
            _ => None,
        };
        let checks_replay = spec.checks_replay && schedule.is_none();
        let shared = Shared::new(&spec.instance, call, checks_replay, spec.most_calls, is_traced);
        {
            let mut state = shared.state();
            state.actions_done = vec![false; spec.actions.len()];
            state.failing = match target {
                Some(Target::Activity(at, fault)) => Some((at, fault)),
                _ => None,
            };
        }
        let outside: Vec<Outside> = spec.outside.iter().map(|make| make()).collect();
        let mocks = spec.mocks.values().chain(spec.child_mocks.values());
        let extend = mocks.chain(outside.iter().map(|outside| &outside.install));
        let module = extend.fold(spec.module.clone(), |module, extend| extend(module));
        Self { spec: spec.clone(), shared, module, outside, schedule, processes: 0, first_gate: None }
    }

    /// Runs processes until the instance ends; returns the last process.
    pub(crate) fn run(&mut self, input: &str) -> Result<Process, Trouble> {
        let mut now_ms = EPOCH_MS;
        loop {
            let process = self.begin(now_ms, input)?;
            match process.tokio.block_on(self.drive(&process)) {
                End::Done => return Ok(process),
                End::Failed => return Err(self.trouble()),
                End::Crashed => now_ms = self.crash(process),
            }
        }
    }

    pub(crate) fn trouble(&self) -> Trouble {
        self.shared.trouble().unwrap_or_else(|| Trouble::Stuck("the run ended without a reason".to_string()))
    }

    /// Ends a process; returns the time at which the next one begins.
    pub(crate) fn crash(&self, process: Process) -> u64 {
        let now_ms = process.tokio.block_on(async { self.shared.clock.now_ms() });
        drop(process);
        let is_late = self.schedule.as_ref().is_some_and(|schedule| schedule.is_late);
        let next = self.pending().map(|(_, at)| EPOCH_MS + saturating_ms(at)).min();
        next.filter(|_| is_late).map_or(now_ms, |next| next.max(now_ms))
    }

    /// The actions that have not run, with their times.
    fn pending(&self) -> impl Iterator<Item = (usize, Duration)> {
        let done = self.shared.state().actions_done.clone();
        let actions = self.spec.actions.iter().enumerate();
        actions.filter(move |(index, _)| !done[*index]).map(|(index, action)| (index, action.at))
    }

    /// Begins a process. The first one finds the start of the instance in the store.
    pub(crate) fn begin(&mut self, now_ms: u64, input: &str) -> Result<Process, Trouble> {
        let tokio = virtual_time::runtime();
        let gate = Arc::new(match self.schedule.as_ref().map(|schedule| schedule.target) {
            Some(Target::Poll(at)) if self.processes == 0 => PollGate::new(Some(at)),
            Some(Target::CancelAtPoll(at)) => PollGate::pausing(at),
            _ => PollGate::new(None),
        });
        let (client, node) = tokio.block_on(self.start(now_ms, input, &gate))?;
        self.processes += 1;
        self.first_gate.get_or_insert_with(|| Arc::clone(&gate));
        Ok(Process { tokio, gate, client, _node: node })
    }

    async fn start(
        &self,
        now_ms: u64,
        input: &str,
        gate: &Arc<PollGate>,
    ) -> Result<(Client, Arc<Runtime>), Trouble> {
        let shared = &self.shared;
        shared.clock.resume_at(now_ms);
        let clock = Arc::<RunClock>::clone(&shared.clock) as Arc<dyn Clock>;
        let options = self.spec.options(profile::quiet(clock, Arc::clone(&shared.entropy) as _, gate));
        let client = Client::new(Arc::clone(&shared.store) as Arc<dyn Provider>)
            .with_codec(options.codec)
            .with_limits(options.limits.clone());
        match self.processes {
            0 => self.start_instance(&client, input).await?,
            _ => {
                shared.note(|| "the process starts again".to_string());
                let held = std::mem::take(&mut shared.state().held);
                for (token, leased) in held {
                    expire(shared.store.as_ref(), &token, leased).await;
                }
            }
        }
        // Actions that were due while no process ran.
        for (index, at) in self.pending().collect::<Vec<_>>() {
            if saturating_ms(at) <= shared.elapsed_ms() && self.processes > 0 {
                act(shared, &self.spec, &client, index).await;
            }
        }
        let module = self.spec.per_process.iter().fold(self.module.clone(), |module, extend| extend(module));
        let (activities, orchestrations) =
            module.build().map_err(|error| Trouble::Start(advised(&error.problems)))?;
        let recorded =
            bodies::recorded(&activities, shared, self.spec.holds_clock).map_err(Trouble::Start)?;
        {
            let mut state = shared.state();
            state.gate = Some(Arc::clone(gate));
            state.build = Some(Build::new(orchestrations.clone(), &options));
            state.activities = activities;
        }
        let store = Arc::new(ProcessStore(Arc::clone(shared)));
        let node = Runtime::builder().store(store).activities(recorded).orchestrations(orchestrations);
        let node = node.options(options).start().await;
        let node = node.map_err(|error| Trouble::Start(error.problems.join("; ")))?;
        for (index, at) in self.pending() {
            let (shared, spec, client) = (Arc::clone(shared), self.spec.clone(), client.clone());
            let wait = at.saturating_sub(Duration::from_millis(shared.elapsed_ms()));
            tokio::spawn(async move {
                tokio::time::sleep(wait).await;
                act(&shared, &spec, &client, index).await;
            });
        }
        Ok((client, node))
    }

    async fn start_instance(&self, client: &Client, input: &str) -> Result<(), Trouble> {
        let spec = &self.spec;
        self.shared.note(|| format!("instance '{}' of {} is started", spec.instance, spec.orchestration));
        let request = client.start_request(spec.orchestration).instance(&spec.instance).input(input);
        let request = match spec.version {
            Some(version) => request.version(version),
            None => request,
        };
        request.send().await.map(drop).map_err(|error| Trouble::Start(error.to_string()))
    }

    /// Runs a process until the instance ends, the process crashes, or the run fails.
    pub(crate) async fn drive(&self, process: &Process) -> End {
        let shared = &self.shared;
        loop {
            let elapsed = Duration::from_millis(shared.elapsed_ms());
            tokio::select! {
                biased;
                () = shared.failed.notified() => return End::Failed,
                () = shared.kill.notified() => return End::Crashed,
                () = process.gate.reached_last_poll.notified() => {
                    shared.note(|| "CRASH between two awaits".to_string());
                    return End::Crashed;
                }
                () = process.gate.reached_pause.notified() => {
                    shared.cancel().await;
                    process.gate.resume();
                }
                () = self.ended() => return End::Done,
                () = tokio::time::sleep(self.spec.limit.saturating_sub(elapsed)) => {
                    let trouble = self.stuck().await;
                    shared.fail(trouble);
                    return End::Failed;
                }
            }
        }
    }

    /// Whether the instance has ended.
    pub(crate) async fn has_ended(&self) -> bool {
        let outcome = self.shared.store.read_outcome(&self.spec.instance).await.ok().flatten();
        outcome.is_some_and(|outcome| outcome.execution_status().is_some_and(ExecutionStatus::ends_instance))
    }

    async fn ended(&self) {
        let store = &self.shared.store;
        loop {
            // The watch is registered before the check, so that a commit between the two resolves it.
            let watch = store.watch_instance(&self.spec.instance, Interest::Ended);
            if self.has_ended().await {
                break;
            }
            match watch {
                Some(watch) => drop(watch.await),
                None => std::future::pending().await,
            }
        }
        for _ in 0..LAST_ROUNDS {
            tokio::task::yield_now().await;
        }
        if self.shared.state().is_cancelled {
            // A body that was not told to stop has its effect after the end of the instance.
            self.shared.bodies_end(LAST_BODIES).await;
        }
        if !self.spec.settle.is_zero() {
            tokio::time::sleep(self.spec.settle).await;
        }
    }

    async fn stuck(&self) -> Trouble {
        let instance = &self.spec.instance;
        let history = self.shared.store.read(instance).await.unwrap_or_default();
        let waits: Vec<String> = open_operations(&history)
            .iter()
            .map(|open| {
                let since = span(open.since_ms.saturating_sub(EPOCH_MS));
                let operation = match &open.operation {
                    Operation::Activity { name, .. } => format!("activity '{name}'"),
                    Operation::Timer { .. } => "a timer".to_string(),
                    Operation::Event { name } => format!("event '{name}'"),
                    Operation::Queue { name } => format!("a message of queue '{name}'"),
                    Operation::Child { name, instance } => format!("child '{instance}' of {name}"),
                };
                format!("{operation} since {since} after the start")
            })
            .collect();
        let waits = if waits.is_empty() { "nothing".to_string() } else { waits.join(", ") };
        let limit = span(saturating_ms(self.spec.limit));
        Trouble::Stuck(format!(
            "instance '{instance}' has not ended after {limit} of virtual time. It waits for {waits}. Does the test send the \
             message, and does the instance wait for it when it comes? `.limit(..)` changes the time"
        ))
    }

    /// The outside world as text, for comparisons.
    pub(crate) fn observed(&self) -> Vec<String> {
        self.outside.iter().map(|outside| (outside.observe)()).collect()
    }
}

/// Problems of the registration, with the advice of a test in the place of that of a program.
fn advised(problems: &[String]) -> String {
    problems
        .join("; ")
        .replace(
            ": call .state(..) with a value",
            ": give the test a fake of it with .world(make, observe), a value that a crash loses with .state(make), or a mock of the \
             activity with .mock::<..>(..)",
        )
}

async fn act(shared: &Shared, spec: &Spec, client: &Client, index: usize) {
    let action = &spec.actions[index];
    shared.note(|| format!("the test {} ({} after the start)", action.words, span(saturating_ms(action.at))));
    let acted = (action.run)(client.clone(), spec.instance.clone()).await;
    shared.state().actions_done[index] = true;
    // A cancelled instance may have ended before an action of the test.
    if let Err(error) = acted.or_else(|error| if shared.state().is_cancelled { Ok(()) } else { Err(error) }) {
        let at = span(saturating_ms(action.at));
        let words = &action.words;
        shared.fail(Trouble::Action(format!("the test {words} at {at}, and that failed: {error}")));
    }
}
