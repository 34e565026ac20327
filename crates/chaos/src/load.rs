//! The clients: they keep a bounded number of jobs running, do their part in them, and remember what they were told.

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

/// Longer than any run: a client that waits in vain is found by whoever waits for the clients.
const FOREVER: Duration = Duration::from_secs(24 * 3600);
const LOOK: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(50);

/// Clients at work.
pub(crate) struct Load {
    shared: Arc<Shared>,
    slots: JoinSet<()>,
}

struct Shared {
    client: Client,
    seed: u64,
    sabotage: Option<Sabotage>,
    /// Added to every start, to fill a disk with.
    ballast: usize,
    next: AtomicU64,
    is_over: AtomicBool,
    /// Calls that failed and were made again.
    repeated: AtomicU64,
    book: Mutex<Book>,
}

/// What the clients know.
#[derive(Default, Clone)]
pub(crate) struct Book {
    /// Starts that were acknowledged, and how they ended as far as clients know.
    pub(crate) jobs: BTreeMap<u64, Option<OrchestrationStatus>>,
    pub(crate) ended: u64,
    /// Calls that failed for good, which none should.
    pub(crate) failures: Vec<String>,
}

impl Load {
    pub(crate) fn start(
        store: &Store,
        seed: u64,
        slots: usize,
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
            book: Mutex::default(),
        });
        let mut load = Self { shared, slots: JoinSet::new() };
        for _ in 0..slots {
            let shared = Arc::clone(&load.shared);
            load.slots.spawn(async move { shared.run().await });
        }
        load
    }

    /// One more client, for one job whose start carries this many bytes.
    pub(crate) fn add_one(&mut self, ballast: usize) {
        let shared = Arc::clone(&self.shared);
        self.slots.spawn(async move {
            let job = shared.next_with_ballast();
            shared.attend(&job, ballast).await;
        });
    }

    pub(crate) fn ended(&self) -> u64 {
        self.shared.book().ended
    }

    /// Starts that were acknowledged.
    pub(crate) fn started(&self) -> u64 {
        self.shared.book().jobs.len() as u64
    }

    pub(crate) fn repeated(&self) -> u64 {
        self.shared.repeated.load(Ordering::Relaxed)
    }

    pub(crate) fn book(&self) -> Book {
        self.shared.book().clone()
    }

    /// For somebody who asks the clients now and then what they know.
    pub(crate) fn witness(&self) -> Witness {
        Witness(Arc::clone(&self.shared))
    }

    /// No new jobs; waits until those that run have ended. `false` if some have not in time.
    pub(crate) async fn finish(&mut self, patience: Duration) -> bool {
        self.shared.is_over.store(true, Ordering::SeqCst);
        let all_ended =
            timeout(patience, async { while self.slots.join_next().await.is_some() {} }).await.is_ok();
        self.slots.abort_all();
        all_ended
    }
}

pub(crate) struct Witness(Arc<Shared>);

impl Witness {
    /// What a copy that is made from now on must hold.
    pub(crate) fn known(&self) -> Known {
        let book = self.0.book();
        let id = |(number, _): (&u64, &Option<_>)| Job::of(self.0.seed, *number).instance();
        Known {
            started: book.jobs.iter().map(id).collect(),
            ended: book.jobs.iter().filter(|(_, told)| told.is_some()).map(id).collect(),
        }
    }
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(&self) {
        while !self.is_over.load(Ordering::SeqCst) {
            self.attend(&self.next(), self.ballast).await;
        }
    }

    fn next(&self) -> Job {
        Job::of(self.seed, self.next.fetch_add(1, Ordering::SeqCst))
    }

    /// The next job whose start can carry bytes that it does not need.
    fn next_with_ballast(&self) -> Job {
        loop {
            let job = self.next();
            if job.kind != Kind::Generations {
                return job;
            }
        }
    }

    /// Sees a job through, and writes down how it ended.
    async fn attend(&self, job: &Job, ballast: usize) {
        let done = self.see_through(job, ballast).await;
        let mut book = self.book();
        match done {
            Ok(Some(told)) => {
                book.jobs.insert(job.number, Some(told));
                book.ended += 1;
            }
            Ok(None) => {}
            Err(error) => book.failures.push(format!("the client of '{}': {error}", job.instance())),
        }
    }

    /// One job, from its start to its end.
    async fn see_through(
        &self,
        job: &Job,
        ballast: usize,
    ) -> Result<Option<OrchestrationStatus>, ClientError> {
        let id = job.instance();
        if self.sabotage.is_some_and(|sabotage| sabotage.strikes(Sabotage::ForgetStart, &id)) {
            self.book().jobs.insert(job.number, None);
            return Ok(None);
        }
        self.again(|| self.begin(job, &id, ballast)).await?;
        self.book().jobs.insert(job.number, None);
        match job.kind {
            Kind::Signal => {
                self.ready(&id).await?;
                self.again(|| self.client.raise_event(&id, GO, GO)).await?;
            }
            Kind::Cut => {
                self.ready(&id).await?;
                self.again(|| self.client.enqueue_event(&id, GO, GO)).await?;
            }
            Kind::Queue => {
                for letter in 1..LETTERS {
                    self.again(|| self.client.enqueue_event(&id, MAIL, letter.to_string())).await?;
                }
            }
            Kind::Cancelled => {
                self.ready(&id).await?;
                self.again(|| self.client.cancel_instance(&id, CANCEL_REASON)).await?;
            }
            _ => {}
        }
        self.again(|| self.client.wait_for_orchestration(&id, FOREVER)).await.map(Some)
    }

    /// A start whose answer was lost may have been stored: its id tells.
    async fn begin(&self, job: &Job, id: &str, ballast: usize) -> Result<StartOutcome, ClientError> {
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

    /// Waits until it says that it waits: what is sent earlier would be lost.
    async fn ready(&self, id: &str) -> Result<OrchestrationStatus, ClientError> {
        self.again(|| self.client.wait_for_status_change(id, 0, LOOK, FOREVER)).await
    }

    /// Storage trouble is no reason to give up.
    async fn again<T, F: Future<Output = Result<T, ClientError>>>(
        &self,
        call: impl Fn() -> F,
    ) -> Result<T, ClientError> {
        loop {
            match call().await {
                Err(error) if error.is_retryable() => {
                    self.repeated.fetch_add(1, Ordering::Relaxed);
                    sleep(PAUSE).await;
                }
                done => return done,
            }
        }
    }
}
