//! What every phase has: a store, a ledger, workers, clients, and an end at which everything is judged.

use crate::args::Run;
use crate::evidence::Record;
use crate::fleet::{Fleet, Setup};
use crate::judge::{Case, judge};
use crate::ledger::Ledger;
use crate::load::Load;
use crate::report::Report;
use crate::store::{POSTGRES_URL, Server, Store, StoreKind};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// When nobody is hurt any more, whatever still runs has this long to end.
const TO_END: Duration = Duration::from_secs(60);
const TO_STOP: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(100);

pub(super) struct Scene {
    folder: PathBuf,
    seed: u64,
    pub(super) store: Store,
    ledger: Ledger,
    pub(super) fleet: Fleet,
    pub(super) load: Load,
    /// The server of the store, if it has one.
    pub(super) server: Option<Server>,
}

/// How many clients there are, how much more than needed they send, and how long workers lease what they ask for.
pub(super) struct Clients {
    pub(super) in_flight: usize,
    pub(super) ballast: usize,
    pub(super) lease: Duration,
}

impl Scene {
    /// Makes store and ledger and lets clients begin; there is nobody yet who works.
    pub(super) async fn open(
        run: &Run,
        folder: PathBuf,
        disk: PathBuf,
        clients: Clients,
    ) -> Result<Self, String> {
        let server = match run.store {
            StoreKind::Postgres => Some(Server::find().await?),
            StoreKind::Sqlite => None,
        };
        let behind = server.as_ref().map(Server::behind_proxy).transpose()?;
        let variables = behind.map(|url| (POSTGRES_URL, url)).into_iter().collect();
        let store = run.store.open(&disk).await?;
        let ledger = Ledger::open(&folder)?;
        let setup = Setup {
            store: run.store,
            disk,
            folder: folder.clone(),
            sabotage: run.sabotage,
            lease: clients.lease,
            variables,
        };
        let load = Load::start(&store, run.seed, clients.in_flight, clients.ballast, run.sabotage);
        Ok(Self { folder, seed: run.seed, store, ledger, fleet: Fleet::new(setup), load, server })
    }

    /// Waits until something is so; `false` if it is not in time.
    pub(super) async fn until(&self, patience: Duration, is_so: impl Fn(&Self) -> bool) -> bool {
        let began = Instant::now();
        while !is_so(self) {
            if began.elapsed() > patience {
                return false;
            }
            sleep(LOOK).await;
        }
        true
    }

    /// Lets everything end, sends everybody home, and judges what is left.
    pub(super) async fn close(mut self, prefix: &str, report: &mut Report) -> Result<(), String> {
        self.fleet.resume_all().await?;
        let began = Instant::now();
        let all_ended = self.load.finish(TO_END).await;
        let is_drained = self.drained(TO_END.saturating_sub(began.elapsed())).await?;
        report.figure(
            &format!("{prefix}milliseconds_to_drain"),
            u64::try_from(began.elapsed().as_millis()).unwrap_or(0),
        );
        self.fleet.count_heads()?;
        let stubborn = self.fleet.dismiss(TO_STOP).await?;

        let book = self.load.book();
        report.figure(&format!("{prefix}instances"), book.ended);
        report.figure(&format!("{prefix}repeated_client_calls"), self.load.repeated());
        let totals = self.fleet.totals();
        report.figure(&format!("{prefix}worker_commits"), totals.stored);
        report.figure(&format!("{prefix}refused_worker_commits"), totals.refused);
        report.figure(&format!("{prefix}failed_worker_commits"), totals.failed);
        report.figure(&format!("{prefix}worker_processes"), self.fleet.names.len());
        report.require("clients and queues came to an end in time", all_ended && is_drained, || {
            format!("after {TO_END:?} without trouble, clients have ended: {all_ended}, queues are empty: {is_drained}")
        });
        report.check("no client call failed for good", &book.failures);
        report.check("no worker died by itself", &self.fleet.deserters);
        report.check("every worker stopped when it was told to", &stubborn);

        let mut record = Record::default();
        for name in &self.fleet.names {
            record.add(&self.folder, name)?;
        }
        let case = Case { store: &self.store, ledger: &self.ledger, book: &book, record, seed: self.seed };
        judge(case, prefix, report).await
    }

    /// Also what no client waits for has to end: detached instances, messages that nobody takes.
    async fn drained(&self, patience: Duration) -> Result<bool, String> {
        let began = Instant::now();
        loop {
            if self.store.leftovers().await?.is_empty() && !self.somebody_runs().await? {
                return Ok(true);
            }
            if began.elapsed() > patience {
                return Ok(false);
            }
            sleep(LOOK).await;
        }
    }

    async fn somebody_runs(&self) -> Result<bool, String> {
        let Some(admin) = self.store.provider.as_management_capability() else { return Ok(false) };
        let running = admin.list_instances_by_status("Running").await;
        running.map(|ids| !ids.is_empty()).map_err(|error| error.to_string())
    }
}
