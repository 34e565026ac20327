//! A finished run, and assertions about it.

use crate::bodies::Body;
use crate::snapshot;
use crate::story::story;
use crate::test_run::{Process, TestRun};
use crate::time::EPOCH_MS;
use crate::trouble::Trouble;
use outlast_author::{Activity, CallError, Handle, Orchestration, Payload};
use outlast_model::Event;
use outlast_model::codec::Codec;
use outlast_provider::Provider;
use outlast_runtime::lens;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::time::Duration;

/// A run of a test whose instance has ended.
pub struct Run<O: Orchestration> {
    pub(crate) instance: String,
    pub(crate) result: Result<O::Output, CallError<O::Error>>,
    pub(crate) status: Option<Result<O::Status, String>>,
    pub(crate) elapsed: Duration,
    pub(crate) bodies: Vec<Body>,
    /// The executions of each instance.
    pub(crate) histories: BTreeMap<String, Vec<Vec<Event>>>,
    pub(crate) observed: Vec<String>,
    pub(crate) codec: Codec,
}

impl<O: Orchestration> Run<O> {
    pub(crate) fn of(test_run: &TestRun, process: &Process) -> Result<Self, Trouble> {
        process.tokio.block_on(async {
            let (instance, shared) = (test_run.spec.instance.clone(), &test_run.shared);
            let handle = Handle::<O>::new(&process.client, &instance);
            let elapsed = Duration::from_millis(shared.elapsed_ms()).saturating_sub(test_run.spec.settle);
            let failed =
                |error: &dyn fmt::Display| Trouble::Start(format!("the store cannot be read: {error}"));
            let mut histories = BTreeMap::new();
            for id in process.client.list_all_instances().await.map_err(|error| failed(&error))? {
                let mut executions = Vec::new();
                for execution in process.client.list_executions(&id).await.map_err(|error| failed(&error))? {
                    let history = shared.store.read_with_execution(&id, execution).await;
                    executions.push(history.map_err(|error| failed(&error))?);
                }
                histories.insert(id, executions);
            }
            let status = handle.status().await.map_err(|error| error.to_string()).transpose();
            Ok(Self {
                instance,
                result: handle.result().await,
                status,
                elapsed,
                bodies: shared.state().bodies.clone(),
                histories,
                observed: test_run.observed(),
                codec: process.client.codec(),
            })
        })
    }

    /// The id of the instance.
    pub fn id(&self) -> &str {
        &self.instance
    }

    /// The output of the instance, or the error with which it failed.
    pub fn result(&self) -> &Result<O::Output, CallError<O::Error>> {
        &self.result
    }

    /// The output of the instance.
    ///
    /// # Panics
    ///
    /// If the instance failed, with its error and its history.
    #[track_caller]
    pub fn output(&self) -> &O::Output {
        match &self.result {
            Ok(output) => output,
            Err(error) => panic!("instance '{}' failed: {error}\n{}", self.instance, self.text()),
        }
    }

    /// The error with which the code failed.
    ///
    /// # Panics
    ///
    /// If the instance returned an output, or failed by an error that its code did not return.
    #[track_caller]
    pub fn failure(&self) -> &O::Error {
        match &self.result {
            Err(CallError::Failed(error)) => error,
            Err(error) => {
                panic!("instance '{}' failed by an error of Outlast: {error}\n{}", self.instance, self.text())
            }
            Ok(_) => panic!("instance '{}' did not fail\n{}", self.instance, self.text()),
        }
    }

    /// The custom status at the end; `None` if the instance has set none.
    ///
    /// # Panics
    ///
    /// If the status does not decode.
    #[track_caller]
    pub fn status(&self) -> Option<&O::Status> {
        match &self.status {
            None => None,
            Some(Ok(status)) => Some(status),
            Some(Err(error)) => panic!("{error}"),
        }
    }

    /// The virtual time from the start of the instance to its end.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// The runs of the body of an activity, mocked or not, in the order in which they began.
    pub fn calls<A: Activity>(&self) -> Calls<A> {
        let bodies = self.bodies.iter().filter(|body| body.activity == A::NAME).cloned().collect();
        Calls { bodies, codec: self.codec, of: PhantomData }
    }

    /// The ids of the instances of an orchestration: children and detached ones, and the instance itself.
    pub fn instances<C: Orchestration>(&self) -> Vec<&str> {
        let is_of = |executions: &Vec<Vec<Event>>| {
            let first = executions.first().and_then(|events| events.first());
            matches!(first.map(|event| &event.kind), Some(outlast_model::EventKind::OrchestrationStarted { name, .. }) if name == C::NAME)
        };
        self.histories.iter().filter(|(_, executions)| is_of(executions)).map(|(id, _)| id.as_str()).collect()
    }

    /// The values that [`Test::world`](crate::Test::world) observed at the end, as text.
    pub fn observed(&self) -> &[String] {
        &self.observed
    }

    /// The events of the instance, of its last execution if it continued as new.
    pub fn history(&self) -> &[Event] {
        self.histories.get(&self.instance).and_then(|executions| executions.last()).map_or(&[], Vec::as_slice)
    }

    /// The events of all executions of an instance.
    pub fn history_of(&self, instance: &str) -> &[Vec<Event>] {
        self.histories.get(instance).map_or(&[], Vec::as_slice)
    }

    /// The history of the instance as text: one line for each event, without times and random ids.
    pub fn text(&self) -> String {
        let executions = self.history_of(&self.instance);
        let texts: Vec<String> = executions.iter().map(|history| story(history).join("\n") + "\n").collect();
        texts.join("\n")
    }

    /// Compares the history with a file, which is relative to the folder of the package's manifest. With the environment variable
    /// `OUTLAST_BLESS=1` it writes the file.
    ///
    /// # Panics
    ///
    /// If the file is missing or differs.
    #[track_caller]
    pub fn matches(&self, path: impl AsRef<Path>) {
        snapshot::check(path.as_ref(), &self.text());
    }

    /// Writes the history of the instance as JSON, for [`ReplayCheck`](crate::ReplayCheck) in the tests of later versions.
    ///
    /// # Panics
    ///
    /// If the file cannot be written.
    #[track_caller]
    pub fn export(&self, path: impl AsRef<Path>) {
        let events: Vec<&Event> = self.history_of(&self.instance).iter().flatten().collect();
        let text =
            serde_json::to_string_pretty(&serde_json::json!({ "instance": self.instance, "events": events }));
        let path = snapshot::in_package(path.as_ref());
        let written =
            text.map_err(|error| error.to_string()).and_then(|text| snapshot::write(&path, &(text + "\n")));
        if let Err(error) = written {
            panic!("{} cannot be written: {error}", path.display());
        }
    }
}

impl<O: Orchestration> fmt::Debug for Run<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("instance", &self.instance)
            .field("elapsed", &self.elapsed)
            .field("history", &story(self.history()))
            .finish_non_exhaustive()
    }
}

/// The runs of the body of an activity: [`Run::calls`].
pub struct Calls<A: Activity> {
    bodies: Vec<Body>,
    codec: Codec,
    of: PhantomData<fn() -> A>,
}

impl<A: Activity> Calls<A> {
    /// The number of runs. Retries of the attribute and redeliveries after a crash are runs too.
    pub fn count(&self) -> usize {
        self.bodies.len()
    }

    /// # Panics
    ///
    /// Unless the body ran this number of times.
    #[track_caller]
    pub fn times(&self, expected: usize) {
        let (count, inputs) = (self.count(), self.shown());
        assert!(
            count == expected,
            "activity '{}' ran {}, not {}: {inputs}",
            A::NAME,
            lens::times(count),
            lens::times(expected)
        );
    }

    /// # Panics
    ///
    /// Unless the body ran once.
    #[track_caller]
    pub fn once(&self) {
        self.times(1);
    }

    /// # Panics
    ///
    /// If the body ran.
    #[track_caller]
    pub fn never(&self) {
        self.times(0);
    }

    /// The inputs.
    ///
    /// # Panics
    ///
    /// If an input does not decode.
    #[track_caller]
    pub fn inputs(&self) -> Vec<A::Input> {
        let decode = |body: &Body| match A::Input::decode(body.input.clone(), self.codec) {
            Ok(input) => input,
            Err(error) => panic!("an input of activity '{}' does not decode: {error}", A::NAME),
        };
        self.bodies.iter().map(decode).collect()
    }

    /// The idempotency keys. Two runs with the same key are deliveries of one call.
    pub fn keys(&self) -> Vec<&str> {
        self.bodies.iter().map(|body| body.key.as_str()).collect()
    }

    /// The virtual times at which the runs began, since the start of the instance.
    pub fn times_of(&self) -> Vec<Duration> {
        self.bodies.iter().map(|body| Duration::from_millis(body.at_ms.saturating_sub(EPOCH_MS))).collect()
    }

    fn shown(&self) -> String {
        let shown: Vec<String> =
            self.bodies.iter().map(|body| format!("{} ({})", body.input, body.key)).collect();
        shown.join(", ")
    }
}
