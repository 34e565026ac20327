//! One worker process, as its supervisor sees it.

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
    orders: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    /// Where what it complains about is written.
    log: PathBuf,
    is_ready: bool,
    /// When a stopped one goes on.
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
        let (Some(orders), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("worker {name} has no pipes"));
        };
        Ok(Self {
            name: name.to_string(),
            child,
            orders,
            lines: BufReader::new(output).lines(),
            log,
            is_ready: false,
            stopped_until: None,
        })
    }

    /// Reads on until it says this; `false` if it does not in time.
    async fn says(&mut self, words: &str, patience: Duration) -> bool {
        let wanted = async {
            while let Ok(Some(line)) = self.lines.next_line().await {
                self.is_ready |= line == READY;
                if line == words {
                    return true;
                }
            }
            false
        };
        timeout(patience, wanted).await.unwrap_or(false)
    }

    /// Whether it works yet, or does in time.
    pub(crate) async fn is_ready(&mut self, patience: Duration) -> bool {
        self.is_ready || self.says(READY, patience).await
    }

    /// Has it stop at a point of its next commit; `false` if it does not get there in time.
    pub(crate) async fn reaches(&mut self, point: Point, patience: Duration) -> bool {
        self.order(&format!("pause {}", point.name())).await;
        self.says(&format!("{AT}{}", point.name()), patience).await
    }

    /// One that is gone hears nothing, which is noticed elsewhere.
    pub(super) async fn order(&mut self, line: &str) {
        let _ = self.orders.write_all(format!("{line}\n").as_bytes()).await;
        let _ = self.orders.flush().await;
    }

    /// SIGKILL. One that is traced loses its tracer, and ends when it notices that nobody gives it orders.
    pub(super) async fn kill(&mut self) -> Result<(), String> {
        self.child.kill().await.map_err(|error| format!("{} could not be killed: {error}", self.name))
    }

    /// SIGSTOP, to be undone then.
    pub(crate) async fn stop_until(&mut self, moment: Instant) -> Result<(), String> {
        self.signal("STOP").await?;
        self.stopped_until = Some(moment);
        Ok(())
    }

    /// SIGCONT, if it is stopped.
    pub(crate) async fn resume(&mut self) -> Result<(), String> {
        match self.stopped_until.take() {
            Some(_) => self.signal("CONT").await,
            None => Ok(()),
        }
    }

    /// The standard library knows no other signal than SIGKILL, but every shell does.
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

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Result<Option<String>, String> {
        match self.child.try_wait() {
            Ok(None) => Ok(None),
            Ok(Some(status)) => Ok(Some(format!("{status}; {}", self.last_words()))),
            Err(error) => Err(format!("{}: {error}", self.name)),
        }
    }

    /// Waits for a good end.
    pub(super) async fn wait(&mut self, patience: Duration) -> Result<(), String> {
        match timeout(patience, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(format!("{status}; {}", self.last_words())),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("it still runs after {patience:?}; {}", self.last_words())),
        }
    }

    fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(5).collect();
        format!("it said: {}", lines.into_iter().rev().collect::<Vec<_>>().join(" / "))
    }
}
