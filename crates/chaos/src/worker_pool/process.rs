//! One worker process.

use super::Setup;
use crate::worker::{AT, Point, READY};
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, timeout};

pub(crate) struct Process {
    pub(crate) name: String,
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    /// The file with its standard error.
    log: PathBuf,
    is_ready: bool,
    /// The time at which a stopped worker is resumed.
    pub(crate) stopped_until: Option<Instant>,
}

impl Process {
    pub(super) fn start(setup: &Setup, name: &str, tracer: &[String]) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("worker {name} could not be started: {error}");
        let own = std::env::current_exe().map_err(failed)?;
        let log = setup.folder.join(format!("{name}.log"));
        let mut command = match tracer.split_first() {
            None => Command::new(own),
            Some((tracer, args)) => {
                let mut command = Command::new(tracer);
                command.args(args).arg(own);
                command
            }
        };
        command.args(["worker", setup.store.name(), "--name", name, "--disk"]).arg(&setup.disk);
        command.arg("--folder").arg(&setup.folder);
        command.args(["--lease-ms", &setup.lease.as_millis().to_string()]);
        command.envs(setup.variables.iter().map(|(name, value)| (name, value)));
        if let Some(sabotage) = setup.sabotage {
            command.args(["--sabotage", sabotage.name()]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(&log).map_err(failed)?);
        let mut child = command.kill_on_drop(true).spawn().map_err(failed)?;
        let (Some(stdin), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("worker {name} has no pipes"));
        };
        Ok(Self {
            name: name.to_string(),
            child,
            stdin,
            lines: BufReader::new(output).lines(),
            log,
            is_ready: false,
            stopped_until: None,
        })
    }

    /// Reads lines until the worker prints this line; `false` if the worker does not print it in time.
    async fn wait_for_line(&mut self, wanted_line: &str, patience: Duration) -> bool {
        let wanted = async {
            while let Ok(Some(line)) = self.lines.next_line().await {
                self.is_ready |= line == READY;
                if line == wanted_line {
                    return true;
                }
            }
            false
        };
        timeout(patience, wanted).await.unwrap_or(false)
    }

    /// Waits until the worker has started; `false` if it does not start in time.
    pub(crate) async fn is_ready(&mut self, patience: Duration) -> bool {
        self.is_ready || self.wait_for_line(READY, patience).await
    }

    /// Lets the worker pause at a point of its next commit; `false` if the worker does not reach the point in time.
    pub(crate) async fn pause_at(&mut self, point: Point, patience: Duration) -> bool {
        self.send(&format!("pause {}", point.name())).await;
        self.wait_for_line(&format!("{AT}{}", point.name()), patience).await
    }

    /// Sends an order. Errors are ignored here: [`Self::ended`] finds workers that exited.
    pub(super) async fn send(&mut self, line: &str) {
        let _ = self.stdin.write_all(format!("{line}\n").as_bytes()).await;
        let _ = self.stdin.flush().await;
    }

    /// Sends SIGKILL. Under a tracer this kills the tracer; the worker then exits because its input is closed.
    pub(super) async fn kill(&mut self) -> Result<(), String> {
        self.child.kill().await.map_err(|error| format!("{} could not be killed: {error}", self.name))
    }

    /// Sends SIGSTOP; the worker is to be resumed at `moment`.
    pub(crate) async fn stop_until(&mut self, moment: Instant) -> Result<(), String> {
        self.signal("STOP").await?;
        self.stopped_until = Some(moment);
        Ok(())
    }

    /// Sends SIGCONT if the worker is stopped.
    pub(crate) async fn resume(&mut self) -> Result<(), String> {
        match self.stopped_until.take() {
            Some(_) => self.signal("CONT").await,
            None => Ok(()),
        }
    }

    /// The standard library can send only SIGKILL, so a shell sends the signal.
    async fn signal(&self, signal: &str) -> Result<(), String> {
        let Some(id) = self.child.id() else { return Ok(()) };
        let script = format!("kill -s {signal} {id}");
        let done = Command::new("sh").args(["-c", &script]).status().await;
        match done {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("`{script}`: {status}")),
            Err(error) => Err(format!("`{script}`: {error}")),
        }
    }

    /// The exit status and the end of the log, if the worker has exited.
    pub(super) fn ended(&mut self) -> Result<Option<String>, String> {
        match self.child.try_wait() {
            Ok(None) => Ok(None),
            Ok(Some(status)) => Ok(Some(format!("{status}; {}", self.end_of_log()))),
            Err(error) => Err(format!("{}: {error}", self.name)),
        }
    }

    /// Waits for a successful exit.
    pub(super) async fn wait(&mut self, patience: Duration) -> Result<(), String> {
        match timeout(patience, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(format!("{status}; {}", self.end_of_log())),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("it still runs after {patience:?}; {}", self.end_of_log())),
        }
    }

    fn end_of_log(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(5).collect();
        format!("its log ends with: {}", lines.into_iter().rev().collect::<Vec<_>>().join(" / "))
    }
}
