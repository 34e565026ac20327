//! The clients: they keep a bounded number of jobs running, perform the actions of each job, and record the answers.

use crate::job::{CANCEL_REASON, GO, Job, Kind, LETTERS, MAIL, Sabotage};
use crate::store::{Known, Store};
use outlast::client::{Client, ClientError, Conflict};
use outlast::{OrchestrationStatus, providers::StartOutcome};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// A client never gives up during a run; the caller that waits for all clients has a limit.
const LONGER_THAN_A_RUN: Duration = Duration::from_secs(24 * 3600);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// The running clients.
pub(crate) struct Load {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

struct Shared {
    client: Client,
    seed: u64,
    sabotage: Option<Sabotage>,
    /// Extra bytes of every start, to fill a disk.
    ballast: usize,
    next: AtomicU64,
    is_over: AtomicBool,
    /// Calls that failed and were repeated.
    repeated: AtomicU64,
    client_record: Mutex<ClientRecord>,
}

/// The answers that clients received.
#[derive(Default, Clone)]
pub(crate) struct ClientRecord {
    /// Acknowledged starts, with the final status if a client received it.
    pub(crate) jobs: BTreeMap<u64, Option<OrchestrationStatus>>,
    pub(crate) ended: u64,
    /// Calls that failed permanently. There should be none.
    pub(crate) failures: Vec<String>,
}

impl Load {
    pub(crate) fn start(
        store: &Store,
        seed: u64,
        clients: usize,
        ballast: usize,
        sabotage: Option<Sabotage>,
    ) -> Self {
        let shared = Arc::new(Shared {
            client: Client::new(store.provider.clone()),
            seed,
            sabotage,
            ballast,
            next: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            repeated: AtomicU64::new(0),
            client_record: Mutex::default(),
        });
        let mut load = Self { shared, tasks: JoinSet::new() };
        for _ in 0..clients {
            let shared = Arc::clone(&load.shared);
            load.tasks.spawn(async move { shared.run_client().await });
        }
        load
    }

    /// Adds a client for one job whose start carries this many extra bytes.
    pub(crate) fn add_one(&mut self, ballast: usize) {
        let shared = Arc::clone(&self.shared);
        self.tasks.spawn(async move {
            let job = shared.next_with_ballast();
            shared.run_job(&job, ballast).await;
        });
    }

    pub(crate) fn ended(&self) -> u64 {
        self.shared.client_record().ended
    }

    /// Number of acknowledged starts.
    pub(crate) fn started(&self) -> u64 {
        self.shared.client_record().jobs.len() as u64
    }

    pub(crate) fn repeated(&self) -> u64 {
        self.shared.repeated.load(Ordering::Relaxed)
    }

    pub(crate) fn client_record(&self) -> ClientRecord {
        self.shared.client_record().clone()
    }

    /// A handle that reads the acknowledged instances.
    pub(crate) fn client_view(&self) -> ClientView {
        ClientView(Arc::clone(&self.shared))
    }

    /// Starts no new jobs and waits until the running jobs have ended. Returns `false` if a job has not ended in time.
    pub(crate) async fn finish(&mut self, patience: Duration) -> bool {
        self.shared.is_over.store(true, Ordering::SeqCst);
        let all_ended =
            timeout(patience, async { while self.tasks.join_next().await.is_some() {} }).await.is_ok();
        self.tasks.abort_all();
        all_ended
    }
}

pub(crate) struct ClientView(Arc<Shared>);

impl ClientView {
    /// The instances that every backup after this call must contain.
    pub(crate) fn known(&self) -> Known {
        let client_record = self.0.client_record();
        let id = |(number, _): (&u64, &Option<_>)| Job::of(self.0.seed, *number).instance();
        Known {
            started: client_record.jobs.iter().map(id).collect(),
            ended: client_record.jobs.iter().filter(|(_, status)| status.is_some()).map(id).collect(),
        }
    }
}

impl Shared {
    fn client_record(&self) -> MutexGuard<'_, ClientRecord> {
        self.client_record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One client: runs one job after the other until the load is over.
    async fn run_client(&self) {
        while !self.is_over.load(Ordering::SeqCst) {
            self.run_job(&self.next(), self.ballast).await;
        }
    }

    fn next(&self) -> Job {
        Job::of(self.seed, self.next.fetch_add(1, Ordering::SeqCst))
    }

    /// The next job whose start can carry extra bytes.
    fn next_with_ballast(&self) -> Job {
        loop {
            let job = self.next();
            if job.kind != Kind::Generations {
                return job;
            }
        }
    }

    /// Runs a job to its end and records its final status.
    async fn run_job(&self, job: &Job, ballast: usize) {
        let result = self.drive_job(job, ballast).await;
        let mut client_record = self.client_record();
        match result {
            Ok(Some(status)) => {
                client_record.jobs.insert(job.number, Some(status));
                client_record.ended += 1;
            }
            Ok(None) => {}
            Err(error) => client_record.failures.push(format!("the client of '{}': {error}", job.instance())),
        }
    }

    /// Starts a job, performs its actions, and waits for its end.
    async fn drive_job(&self, job: &Job, ballast: usize) -> Result<Option<OrchestrationStatus>, ClientError> {
        let id = job.instance();
        if self.sabotage.is_some_and(|sabotage| sabotage.affects(Sabotage::ForgetStart, &id)) {
            self.client_record().jobs.insert(job.number, None);
            return Ok(None);
        }
        self.retry(|| self.start_job(job, &id, ballast)).await?;
        self.client_record().jobs.insert(job.number, None);
        match job.kind {
            Kind::Signal => {
                self.wait_until_ready(&id).await?;
                self.retry(|| self.client.raise_event(&id, GO, GO)).await?;
            }
            Kind::Cut => {
                self.wait_until_ready(&id).await?;
                self.retry(|| self.client.enqueue_event(&id, GO, GO)).await?;
            }
            Kind::Queue => {
                for letter in 1..LETTERS {
                    self.retry(|| self.client.enqueue_event(&id, MAIL, letter.to_string())).await?;
                }
            }
            Kind::Cancelled => {
                self.wait_until_ready(&id).await?;
                self.retry(|| self.client.cancel_instance(&id, CANCEL_REASON)).await?;
            }
            _ => {}
        }
        self.retry(|| self.client.wait_for_orchestration(&id, LONGER_THAN_A_RUN)).await.map(Some)
    }

    /// Starts a job. A repeated start finds its id taken if the first one was stored.
    async fn start_job(&self, job: &Job, id: &str, ballast: usize) -> Result<StartOutcome, ClientError> {
        let input = match job.kind {
            Kind::Generations => "0".to_string(),
            _ => "x".repeat(ballast),
        };
        let mut start = self.client.start_request(job.kind.name()).instance(id).input(input);
        if job.kind == Kind::Queue {
            start = start.with_event(MAIL, "0");
        }
        start.if_exists(Conflict::Fail).send().await.map(|receipt| receipt.outcome)
    }

    /// Waits until the instance sets its status, because an event that is raised earlier is lost.
    async fn wait_until_ready(&self, id: &str) -> Result<OrchestrationStatus, ClientError> {
        self.retry(|| self.client.wait_for_status_change(id, 0, POLL_INTERVAL, LONGER_THAN_A_RUN)).await
    }

    /// Repeats a call until it succeeds or fails permanently.
    async fn retry<T, F: Future<Output = Result<T, ClientError>>>(
        &self,
        call: impl Fn() -> F,
    ) -> Result<T, ClientError> {
        loop {
            match call().await {
                Err(error) if error.is_retryable() => {
                    self.repeated.fetch_add(1, Ordering::Relaxed);
                    sleep(RETRY_PAUSE).await;
                }
                result => return result,
            }
        }
    }
}
