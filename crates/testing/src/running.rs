//! An instance that a test drives step by step.

use crate::run::Run;
use crate::spec::Spec;
use crate::test_run::{End, Process, TestRun};
use crate::time::EPOCH_MS;
use crate::trouble::Trouble;
use outlast_author::{AcceptedBy, Handle, Message, Orchestration, Outgoing};
use outlast_provider::Clock;
use std::marker::PhantomData;
use std::time::Duration;

/// An instance that a test drives step by step: [`Test::start`](crate::Test::start). Virtual time stands still between two calls.
pub struct Running<O: Orchestration> {
    test_run: TestRun,
    input: String,
    /// `None` only while a process is replaced.
    process: Option<Process>,
    of: PhantomData<fn() -> O>,
}

impl<O: Orchestration> Running<O> {
    pub(crate) fn begin(spec: &Spec, input: String) -> Result<Self, Trouble> {
        let mut test_run = TestRun::new(spec, None, false);
        let process = test_run.begin(EPOCH_MS, &input)?;
        let mut running = Self { test_run, input, process: Some(process), of: PhantomData };
        running.advance(Duration::ZERO);
        Ok(running)
    }

    #[track_caller]
    fn process(&self) -> &Process {
        match &self.process {
            Some(process) => process,
            None => panic!("the process did not start again"),
        }
    }

    /// The handle of the instance. Await its futures with [`Running::block_on`].
    pub fn handle(&self) -> Handle<O> {
        Handle::new(&self.process().client, &self.test_run.spec.instance)
    }

    /// Awaits a future; virtual time goes on as far as the future needs it.
    ///
    /// # Panics
    ///
    /// With the [`Trouble`] of the run.
    #[track_caller]
    pub fn block_on<T>(&mut self, future: impl Future<Output = T>) -> T {
        let value = self.process().tokio.block_on(future);
        self.check();
        value
    }

    /// Lets virtual time go on, and all code that has something to do.
    ///
    /// # Panics
    ///
    /// With the [`Trouble`] of the run.
    #[track_caller]
    pub fn advance(&mut self, time: Duration) {
        // A millisecond is the least time of tokio's timers; without time the tasks go on until each of them waits.
        self.block_on(async move {
            match time.is_zero() {
                true => {
                    for _ in 0..256 {
                        tokio::task::yield_now().await;
                    }
                }
                false => tokio::time::sleep(time).await,
            }
        });
        if !time.is_zero() {
            self.advance(Duration::ZERO);
        }
    }

    /// Sends a message, or a reference to one, and lets the instance read it.
    ///
    /// # Panics
    ///
    /// If the message cannot be sent.
    #[track_caller]
    pub fn send<M: Outgoing<Message: Message + AcceptedBy<O>>>(&mut self, message: M) {
        let handle = self.handle();
        let sent = self.block_on(async { handle.send(message).await.map_err(|error| error.to_string()) });
        if let Err(error) = sent {
            panic!("a message of '{}' was not sent: {error}", M::Message::NAME);
        }
        self.advance(Duration::ZERO);
    }

    /// The custom status; `None` if the instance has set none.
    ///
    /// # Panics
    ///
    /// If the status cannot be read.
    #[track_caller]
    pub fn status(&mut self) -> Option<O::Status> {
        let handle = self.handle();
        match self.block_on(async { handle.status().await.map_err(|error| error.to_string()) }) {
            Ok(status) => status,
            Err(error) => panic!("{error}"),
        }
    }

    /// Whether the instance has ended.
    #[track_caller]
    pub fn has_ended(&mut self) -> bool {
        self.process().tokio.block_on(self.test_run.has_ended())
    }

    /// The virtual time since the start of the instance.
    pub fn elapsed(&self) -> Duration {
        let test_run = &self.test_run;
        Duration::from_millis(self.process().tokio.block_on(async { test_run.shared.elapsed_ms() }))
    }

    /// Crashes the process and starts another one, at the same virtual time.
    ///
    /// # Panics
    ///
    /// With a [`Trouble`] if the process cannot start again.
    #[track_caller]
    pub fn crash(&mut self) {
        let Some(process) = self.process.take() else { return };
        let now_ms = self.test_run.crash(process);
        match self.test_run.begin(now_ms, &self.input) {
            Ok(process) => self.process = Some(process),
            Err(trouble) => panic!("{trouble}"),
        }
        self.advance(Duration::ZERO);
    }

    /// Runs the instance to its end.
    ///
    /// # Panics
    ///
    /// With the [`Trouble`] of the run.
    #[track_caller]
    pub fn finish(self) -> Run<O> {
        let process = self.process();
        let end = process.tokio.block_on(self.test_run.drive(process));
        let run = match end {
            End::Done => Run::of(&self.test_run, process),
            End::Crashed | End::Failed => Err(self.test_run.trouble()),
        };
        match run {
            Ok(run) => run,
            Err(trouble) => panic!("{trouble}"),
        }
    }

    #[track_caller]
    fn check(&self) {
        if let Some(trouble) = self.test_run.shared.trouble() {
            panic!("{trouble}");
        }
    }

    /// The current virtual time, in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> u64 {
        let test_run = &self.test_run;
        self.process().tokio.block_on(async { test_run.shared.clock.now_ms() })
    }
}
