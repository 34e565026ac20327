//! The worker processes of a phase.

mod process;

pub(crate) use process::Process;

use crate::commit_log::{CommitCounts, CommitRecord};
use crate::job::Sabotage;
use crate::store::StoreKind;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The settings of every worker of a phase.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) store: StoreKind,
    /// The folder of the store; the folder of the phase unless the store has its own disk.
    pub(crate) disk: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) sabotage: Option<Sabotage>,
    /// Duration of the leases.
    pub(crate) lease: Duration,
    /// Additional environment variables.
    pub(crate) variables: Vec<(&'static str, String)>,
}

/// The running workers, and the names of all workers.
pub(crate) struct WorkerPool {
    setup: Setup,
    pub(crate) workers: Vec<Process>,
    /// Names of all workers that ever ran.
    pub(crate) names: Vec<String>,
    /// Workers that exited without a request.
    pub(crate) unexpected_exits: Vec<String>,
}

impl WorkerPool {
    pub(crate) fn new(setup: Setup) -> Self {
        Self { setup, workers: Vec::new(), names: Vec::new(), unexpected_exits: Vec::new() }
    }

    /// Starts a worker, perhaps under a tracer.
    pub(crate) fn add(&mut self, tracer: &[String]) -> Result<(), String> {
        let name = format!("w{}", self.names.len() + 1);
        self.workers.push(Process::start(&self.setup, &name, tracer)?);
        self.names.push(name);
        Ok(())
    }

    /// Kills a worker and starts another. Returns the commits of the killed worker.
    pub(crate) async fn kill(&mut self, index: usize) -> Result<CommitRecord, String> {
        let mut worker = self.workers.swap_remove(index);
        worker.kill().await?;
        self.add(&[])?;
        let mut record = CommitRecord::default();
        record.add(&self.setup.folder, &worker.name)?;
        Ok(record)
    }

    /// Records workers that exited by themselves, and replaces them.
    pub(crate) fn replace_exited(&mut self) -> Result<(), String> {
        let mut index = 0;
        while let Some(worker) = self.workers.get_mut(index) {
            match worker.ended()? {
                None => index += 1,
                Some(how) => {
                    self.unexpected_exits.push(format!("{} exited by itself: {how}", worker.name));
                    self.workers.swap_remove(index);
                    self.add(&[])?;
                }
            }
        }
        Ok(())
    }

    /// Sends an order to every worker.
    pub(crate) async fn send_to_all(&mut self, line: &str) {
        for worker in &mut self.workers {
            worker.send(line).await;
        }
    }

    /// Resumes all stopped workers.
    pub(crate) async fn resume_all(&mut self) -> Result<(), String> {
        for worker in &mut self.workers {
            worker.resume().await?;
        }
        Ok(())
    }

    /// Stops all workers; returns those that did not stop in time.
    pub(crate) async fn stop_all(&mut self, patience: Duration) -> Result<Vec<String>, String> {
        let mut problems = Vec::new();
        self.send_to_all("stop").await;
        for mut worker in std::mem::take(&mut self.workers) {
            if let Err(how) = worker.wait(patience).await {
                problems.push(format!("{} did not stop: {how}", worker.name));
                worker.kill().await?;
            }
        }
        Ok(problems)
    }

    /// Number of commits of each running worker.
    pub(crate) fn stored(&self) -> BTreeMap<String, u64> {
        let stored = |name: &str| CommitCounts::read(&self.setup.folder, name).stored;
        self.workers.iter().map(|worker| (worker.name.clone(), stored(&worker.name))).collect()
    }

    /// The sum of the counts of all workers, running or not.
    pub(crate) fn totals(&self) -> CommitCounts {
        self.names.iter().map(|name| CommitCounts::read(&self.setup.folder, name)).fold(
            CommitCounts::default(),
            |sum, one| CommitCounts {
                stored: sum.stored + one.stored,
                refused: sum.refused + one.refused,
                failed: sum.failed + one.failed,
                held: sum.held + one.held,
            },
        )
    }
}
