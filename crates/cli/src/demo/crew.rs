//! The supervisor's side of the two workers: starts them, kills them when the visitor asks for it, and replaces killed ones.

use super::books::Books;
use super::entry::Entry;
use super::report::Report;
use super::stage::Stage;
use super::worker::{GRACE_MS, STOP};
use crate::failure::Failure;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The workers by number.
pub(super) const WORKERS: [u32; 2] = [1, 2];
/// The time until a killed worker is replaced: the other one takes over before.
const REPLACED_AFTER: Duration = Duration::from_secs(2);
/// The time that a worker has to end.
const PATIENCE: Duration = Duration::from_millis(GRACE_MS + 10_000);

/// Requests to kill workers, from the page.
#[derive(Clone, Default)]
pub(super) struct Kills(Arc<[Notify; WORKERS.len()]>);

impl Kills {
    fn of(&self, worker: u32) -> Option<&Notify> {
        self.0.get(WORKERS.iter().position(|known| *known == worker)?)
    }

    #[cfg(feature = "server")]
    pub(super) fn kill(&self, worker: u32) {
        if let Some(kill) = self.of(worker) {
            kill.notify_one();
        }
    }
}

/// The two worker processes of a batch. They are killed when the value is dropped.
pub(super) struct Crew {
    tasks: JoinSet<Result<(), Failure>>,
    stop: watch::Sender<bool>,
}

impl Crew {
    pub(super) fn start(dir: &Path, stage: &Stage, books: &Books, kills: &Kills) -> Result<Self, Failure> {
        let program = std::env::current_exe()?;
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        for worker in WORKERS {
            let place = Place {
                worker,
                program: program.clone(),
                dir: dir.to_path_buf(),
                stage: stage.clone(),
                books: books.clone(),
                kills: kills.clone(),
                stopped: stopped.clone(),
            };
            tasks.spawn(place.keep());
        }
        Ok(Self { tasks, stop })
    }

    /// Resolves when a worker has failed by itself.
    pub(super) async fn failed(&mut self) -> Failure {
        match self.tasks.join_next().await {
            Some(Ok(Err(failure))) => failure,
            Some(Ok(Ok(()))) | None => Failure::new("a worker ended without a request"),
            Some(Err(error)) => Failure::new(format!("the task of a worker ended: {error}")),
        }
    }

    /// Lets the workers finish what they have begun.
    pub(super) async fn stop(mut self) -> Result<(), Failure> {
        self.stop.send_replace(true);
        while let Some(ended) = self.tasks.join_next().await {
            ended.map_err(|error| Failure::new(format!("the task of a worker ended: {error}")))??;
        }
        Ok(())
    }
}

/// The place of one worker.
struct Place {
    worker: u32,
    program: PathBuf,
    dir: PathBuf,
    stage: Stage,
    books: Books,
    kills: Kills,
    stopped: watch::Receiver<bool>,
}

/// The end of a process.
enum End {
    Stopped,
    Killed,
}

impl Place {
    /// Runs one process after another until the crew is stopped.
    async fn keep(mut self) -> Result<(), Failure> {
        loop {
            let mut process = Process::start(&self.program, &self.dir, self.worker)?;
            self.stage.started(self.worker, process.id);
            let end = self.watch(&mut process).await?;
            self.stage.ended(self.worker, matches!(end, End::Killed));
            if matches!(end, End::Stopped) {
                return Ok(());
            }
            self.books.note(Entry::WorkerKilled { worker: self.worker, process: process.id }).await?;
            let stopped = self.stopped.wait_for(|stopped| *stopped);
            if timeout(REPLACED_AFTER, stopped).await.is_ok() {
                return Ok(());
            }
        }
    }

    async fn watch(&self, process: &mut Process) -> Result<End, Failure> {
        let mut is_killed = false;
        let mut stopped = self.stopped.clone();
        loop {
            let kill = async {
                match self.kills.of(self.worker) {
                    Some(kill) => kill.notified().await,
                    None => std::future::pending().await,
                }
            };
            let stop = async { drop(stopped.wait_for(|stopped| *stopped).await) };
            tokio::select! {
                line = process.lines.next_line() => match line? {
                    Some(line) => self.report(&line),
                    None => return self.end_of(process.child.wait().await?, is_killed),
                },
                () = kill => {
                    is_killed = true;
                    process.child.start_kill()?;
                }
                () = stop => return self.stop(process).await,
            }
        }
    }

    fn report(&self, line: &str) {
        if let Ok(report) = serde_json::from_str::<Report>(line) {
            self.stage.reported(self.worker, report);
        }
    }

    /// A process that a signal ended was killed, and one that got SIGTERM has drained and ended with status 0: both are replaced. One
    /// that exited with another status has failed.
    fn end_of(&self, status: ExitStatus, is_killed: bool) -> Result<End, Failure> {
        match status.code() {
            Some(1..) if !is_killed => Err(Failure::new(format!(
                "worker {} of the demo ended by itself ({status}): its error is above",
                self.worker
            ))),
            _ => Ok(End::Killed),
        }
    }

    async fn stop(&self, process: &mut Process) -> Result<End, Failure> {
        // The pipe of a process that was just killed is closed.
        let _ = process.orders.write_all(format!("{STOP}\n").as_bytes()).await;
        let ends = async {
            while let Some(line) = process.lines.next_line().await? {
                self.report(&line);
            }
            process.child.wait().await
        };
        if timeout(PATIENCE, ends).await.is_err() {
            process.child.kill().await?;
        }
        Ok(End::Stopped)
    }
}

/// A worker process.
struct Process {
    id: u32,
    child: Child,
    /// Its standard input. The process ends when it is closed.
    orders: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(program: &Path, dir: &Path, worker: u32) -> Result<Self, Failure> {
        let mut command = Command::new(program);
        command.arg("demo").arg("--dir").arg(dir).arg("--worker").arg(worker.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let started = command.spawn();
        let mut child = started
            .map_err(|error| Failure::new(format!("'{}' cannot be started: {error}", program.display())))?;
        match (child.id(), child.stdin.take(), child.stdout.take()) {
            (Some(id), Some(orders), Some(lines)) => {
                Ok(Self { id, child, orders, lines: BufReader::new(lines).lines() })
            }
            _ => Err(Failure::new("a worker has no standard input and output")),
        }
    }
}
