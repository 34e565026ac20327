//! The worker processes of a run.

mod process;

pub(crate) use process::Process;

use crate::evidence::State;
use crate::job::Sabotage;
use crate::store::StoreKind;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What every worker of a phase is given.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) store: StoreKind,
    /// Where the store is; the folder itself unless it has a disk of its own.
    pub(crate) disk: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) sabotage: Option<Sabotage>,
    /// How long its work is leased.
    pub(crate) lease: Duration,
    /// Variables that it has beside those of its supervisor.
    pub(crate) variables: Vec<(&'static str, String)>,
}

/// The processes, and what became of those that are gone.
pub(crate) struct Fleet {
    setup: Setup,
    pub(crate) workers: Vec<Process>,
    /// Everybody who ever worked.
    pub(crate) names: Vec<String>,
    /// Workers that ended without having been told to.
    pub(crate) deserters: Vec<String>,
}

impl Fleet {
    pub(crate) fn new(setup: Setup) -> Self {
        Self { setup, workers: Vec::new(), names: Vec::new(), deserters: Vec::new() }
    }

    /// Starts one more worker, perhaps under a tracer.
    pub(crate) fn add(&mut self, tracer: &[String]) -> Result<(), String> {
        let name = format!("w{}", self.names.len() + 1);
        self.workers.push(Process::start(&self.setup, &name, tracer)?);
        self.names.push(name);
        Ok(())
    }

    /// Kills a worker and puts another in its place. Says what it had in flight.
    pub(crate) async fn kill(&mut self, index: usize) -> Result<State, String> {
        let mut worker = self.workers.swap_remove(index);
        worker.kill().await?;
        self.add(&[])?;
        Ok(State::read(&self.setup.folder, &worker.name))
    }

    /// Notes workers that died by themselves, and replaces them.
    pub(crate) fn count_heads(&mut self) -> Result<(), String> {
        let mut index = 0;
        while let Some(worker) = self.workers.get_mut(index) {
            match worker.ended()? {
                None => index += 1,
                Some(how) => {
                    self.deserters.push(format!("{} ended by itself: {how}", worker.name));
                    self.workers.swap_remove(index);
                    self.add(&[])?;
                }
            }
        }
        Ok(())
    }

    /// Tells every worker.
    pub(crate) async fn order_all(&mut self, line: &str) {
        for worker in &mut self.workers {
            worker.order(line).await;
        }
    }

    /// Lets everybody go on who is stopped.
    pub(crate) async fn resume_all(&mut self) -> Result<(), String> {
        for worker in &mut self.workers {
            worker.resume().await?;
        }
        Ok(())
    }

    /// Tells everybody to stop, and waits for it.
    pub(crate) async fn dismiss(&mut self, patience: Duration) -> Result<Vec<String>, String> {
        let mut problems = Vec::new();
        self.order_all("stop").await;
        for mut worker in std::mem::take(&mut self.workers) {
            if let Err(how) = worker.wait(patience).await {
                problems.push(format!("{} did not stop as told: {how}", worker.name));
                worker.kill().await?;
            }
        }
        Ok(problems)
    }

    /// How many commits each worker has made that is alive.
    pub(crate) fn stored(&self) -> BTreeMap<String, u64> {
        let stored = |name: &str| State::read(&self.setup.folder, name).stored;
        self.workers.iter().map(|worker| (worker.name.clone(), stored(&worker.name))).collect()
    }

    /// The numbers of all workers, dead or alive, added up.
    pub(crate) fn totals(&self) -> State {
        self.names.iter().map(|name| State::read(&self.setup.folder, name)).fold(
            State::default(),
            |sum, one| State {
                in_flight: sum.in_flight + one.in_flight,
                stored: sum.stored + one.stored,
                refused: sum.refused + one.refused,
                failed: sum.failed + one.failed,
                held: sum.held + one.held,
            },
        )
    }
}
