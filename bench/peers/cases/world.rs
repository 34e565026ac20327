//! A store, a runtime on it with the two programs, and a client.

use super::args::Args;
use super::progress::Progress;
use duroxide::providers::Provider;
use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, Client, ClientError, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
    RuntimeOptions,
};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Clients that start a backlog.
const STARTERS: usize = 8;

pub(super) struct World {
    pub(super) client: Client,
    pub(super) progress: Arc<Progress>,
    runtime: Arc<Runtime>,
}

/// The instance whose number an orchestration gets as its input.
pub(super) fn instance(number: usize) -> String {
    format!("case-{number:06}")
}

impl World {
    /// Opens a fresh store, starts the runtime and runs one orchestration, so that no case pays for the first of all.
    pub(super) async fn open(args: &Args) -> Self {
        let store: Arc<dyn Provider> = if args.in_memory {
            Arc::new(SqliteProvider::new_in_memory().await.expect("a store in memory"))
        } else {
            let path = args.dir.join("case.db");
            let url = format!("sqlite:{}?mode=rwc", path.display());
            Arc::new(SqliteProvider::new(&url, None).await.expect("a store in a file"))
        };
        let progress = Arc::new(Progress::default());
        let mut options = RuntimeOptions {
            orchestration_concurrency: args.dispatchers,
            worker_concurrency: args.dispatchers,
            ..RuntimeOptions::default()
        };
        if let Some(poll) = args.poll {
            options.dispatcher_min_poll_interval = poll;
        }
        let activities = activities(&progress);
        let orchestrations = orchestrations(&progress, args.steps);
        let runtime =
            Runtime::start_with_options(Arc::clone(&store), activities, orchestrations, options).await;
        let world = Self { client: Client::new(store), progress, runtime };
        start(&world.client, "warm-up", "Hello", "warm-up").await;
        wait(&world.client, "warm-up", args.limit).await;
        world
    }

    pub(super) async fn close(self) {
        self.runtime.shutdown(Some(0)).await;
    }

    /// Starts this many instances as fast as a few clients can, and waits until the last one is durably over.
    pub(super) async fn backlog(&self, orchestration: &'static str, args: &Args, count: usize) -> Drained {
        self.progress.expect(count);
        let begun = Instant::now();
        let mut starters = JoinSet::new();
        for first in 0..STARTERS {
            let client = self.client.clone();
            starters.spawn(async move {
                for number in (first..count).step_by(STARTERS) {
                    start(&client, &instance(number), orchestration, &number.to_string()).await;
                }
            });
        }
        while starters.join_next().await.is_some() {}
        // Turns that are not yet committed when the last orchestration says that it has ended.
        let tail = 2 * args.dispatchers;
        let time = self.progress.drained(&self.client, begun, args.limit, tail).await;
        let ended = self.progress.ended();
        let (completed, failed) = self.census(count).await;
        Drained { time, ended, failed, unfinished: count - completed - failed }
    }

    /// How many instances completed, and how many failed.
    async fn census(&self, count: usize) -> (usize, usize) {
        let (mut completed, mut failed) = (0, 0);
        for number in 0..count {
            match self.client.get_orchestration_status(&instance(number)).await {
                Ok(OrchestrationStatus::Completed { .. }) => completed += 1,
                Ok(OrchestrationStatus::Failed { .. }) => failed += 1,
                _ => {}
            }
        }
        (completed, failed)
    }
}

/// How a backlog went.
pub(super) struct Drained {
    pub(super) time: Duration,
    /// Orchestrations that reached their end.
    pub(super) ended: usize,
    pub(super) failed: usize,
    pub(super) unfinished: usize,
}

/// Starts an instance; an overloaded store may refuse for a while.
pub(super) async fn start(client: &Client, instance: &str, orchestration: &str, input: &str) {
    while let Err(error) = client.start_orchestration(instance, orchestration, input).await {
        retry(error).await;
    }
}

/// Waits as any client does; says whether the instance completed, or nothing if it did not end in time.
pub(super) async fn wait(client: &Client, instance: &str, limit: Duration) -> Option<bool> {
    let begun = Instant::now();
    loop {
        match client.wait_for_orchestration(instance, limit.saturating_sub(begun.elapsed())).await {
            Ok(status) => return Some(matches!(status, OrchestrationStatus::Completed { .. })),
            Err(ClientError::Timeout) => return None,
            Err(error) => retry(error).await,
        }
    }
}

async fn retry(error: ClientError) {
    assert!(error.is_retryable(), "{error}");
    tokio::time::sleep(Duration::from_millis(5)).await;
}

fn activities(progress: &Arc<Progress>) -> ActivityRegistry {
    let progress = Arc::clone(progress);
    ActivityRegistry::builder()
        .register("Greet", |_: ActivityContext, name: String| async move { Ok(format!("hello, {name}")) })
        .register("Step", move |_: ActivityContext, step: String| {
            progress.step();
            async move { Ok(step) }
        })
        .build()
}

fn orchestrations(progress: &Arc<Progress>, steps: usize) -> OrchestrationRegistry {
    let (hello, chain) = (Arc::clone(progress), Arc::clone(progress));
    OrchestrationRegistry::builder()
        .register("Hello", move |ctx: OrchestrationContext, number: String| {
            let progress = Arc::clone(&hello);
            async move {
                let greeting = ctx.schedule_activity("Greet", number.as_str()).await?;
                progress.end(&number);
                Ok(greeting)
            }
        })
        .register("Chain", move |ctx: OrchestrationContext, number: String| {
            let progress = Arc::clone(&chain);
            async move {
                let mut last = String::new();
                for step in 0..steps {
                    last = ctx.schedule_activity("Step", step.to_string()).await?;
                }
                progress.end(&number);
                Ok(last)
            }
        })
        .build()
}
