//! The parts of every phase: a store, an effect ledger, workers, clients, and a verification at the end.

use crate::args::Run;
use crate::commit_log::CommitRecord;
use crate::effect_ledger::EffectLedger;
use crate::load::Load;
use crate::report::Report;
use crate::store::{Account, POSTGRES_URL, Server, Store, StoreKind};
use crate::verify::{VerifyInput, verify};
use crate::worker_pool::{Setup, WorkerPool};
use outlast_model::ExecutionStatus;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Time limit for all instances to end after the last fault.
const TO_END: Duration = Duration::from_secs(60);
const TO_STOP: Duration = Duration::from_secs(15);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

pub(super) struct PhaseRun {
    folder: PathBuf,
    seed: u64,
    pub(super) store: Store,
    ledger: EffectLedger,
    pub(super) pool: WorkerPool,
    pub(super) load: Load,
    /// The server of the store, if it has one.
    pub(super) server: Option<Server>,
    /// The account of the store, if it has one. It ends after the verification.
    _account: Option<Account>,
}

/// The number of clients, the extra bytes of their starts, and the lease of workers.
pub(super) struct Clients {
    pub(super) in_flight: usize,
    pub(super) ballast: usize,
    pub(super) lease: Duration,
}

impl PhaseRun {
    /// Creates the store and the effect ledger, and starts the clients. There are no workers yet.
    pub(super) async fn open(
        run: &Run,
        folder: PathBuf,
        disk: PathBuf,
        clients: Clients,
    ) -> Result<Self, String> {
        let (mut server, mut account, mut variables) = (None, None, Vec::new());
        match run.store {
            StoreKind::Cosmos => variables = account.insert(Account::find().await?).variables(),
            StoreKind::Postgres => {
                let server = server.insert(Server::find().await?);
                variables.push((POSTGRES_URL, server.behind_proxy()?));
            }
            StoreKind::Sqlite => {}
        }
        let store = run.store.open(&disk, account.as_ref()).await?;
        let ledger = EffectLedger::open(&folder)?;
        let setup = Setup {
            store: run.store,
            disk,
            folder: folder.clone(),
            sabotage: run.sabotage,
            lease: clients.lease,
            variables,
        };
        let load = Load::start(&store, run.seed, clients.in_flight, clients.ballast, run.sabotage);
        let (seed, pool) = (run.seed, WorkerPool::new(setup));
        Ok(Self { folder, seed, store, ledger, pool, load, server, _account: account })
    }

    /// Waits until the condition holds; returns `false` if it does not in time.
    pub(super) async fn wait_until(&self, patience: Duration, condition: impl Fn(&Self) -> bool) -> bool {
        let began = Instant::now();
        while !condition(self) {
            if began.elapsed() > patience {
                return false;
            }
            sleep(POLL_INTERVAL).await;
        }
        true
    }

    /// Waits until all instances end, stops all workers, and verifies the store.
    pub(super) async fn close(mut self, prefix: &str, report: &mut Report) -> Result<(), String> {
        self.pool.resume_all().await?;
        let began = Instant::now();
        let all_ended = self.load.finish(TO_END).await;
        let is_drained = self.wait_until_drained(TO_END.saturating_sub(began.elapsed())).await?;
        report.figure(
            &format!("{prefix}milliseconds_to_drain"),
            u64::try_from(began.elapsed().as_millis()).unwrap_or(0),
        );
        self.pool.replace_exited()?;
        let not_stopped = self.pool.stop_all(TO_STOP).await?;

        let client_record = self.load.client_record();
        report.figure(&format!("{prefix}instances"), client_record.ended);
        report.figure(&format!("{prefix}repeated_client_calls"), self.load.repeated());
        let totals = self.pool.totals();
        report.figure(&format!("{prefix}worker_commits"), totals.stored);
        report.figure(&format!("{prefix}refused_worker_commits"), totals.refused);
        report.figure(&format!("{prefix}failed_worker_commits"), totals.failed);
        report.figure(&format!("{prefix}worker_processes"), self.pool.names.len());
        report.require("all instances end and all queues are empty in time", all_ended && is_drained, || {
            format!("{TO_END:?} after the last fault, clients have ended: {all_ended}, queues are empty: {is_drained}")
        });
        report.check("no client call failed permanently", &client_record.failures);
        report.check("no worker exited by itself", &self.pool.unexpected_exits);
        report.check("every worker stopped on request", &not_stopped);

        let mut record = CommitRecord::default();
        for name in &self.pool.names {
            record.add(&self.folder, name)?;
        }
        let input = VerifyInput {
            store: &self.store,
            ledger: &self.ledger,
            client_record: &client_record,
            record,
            seed: self.seed,
        };
        verify(input, prefix, report).await
    }

    /// Waits until the queues are empty and no instance runs. This includes detached instances, which no client waits
    /// for.
    async fn wait_until_drained(&self, patience: Duration) -> Result<bool, String> {
        let began = Instant::now();
        loop {
            if self.store.leftovers().await?.is_empty() && !self.has_running_instances().await? {
                return Ok(true);
            }
            if began.elapsed() > patience {
                return Ok(false);
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    async fn has_running_instances(&self) -> Result<bool, String> {
        let Some(admin) = self.store.provider.as_management_capability() else { return Ok(false) };
        let running = admin.list_instances_by_status(ExecutionStatus::Running.as_str()).await;
        running.map(|ids| !ids.is_empty()).map_err(|error| error.to_string())
    }
}
