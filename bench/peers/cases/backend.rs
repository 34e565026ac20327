//! A store, a runtime on it with the programs, and a client.

use super::progress::Progress;
use crate::measure::{Args, Outcome};
use crate::side;
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

/// Longer than any scenario.
const NIGHT: Duration = Duration::from_secs(24 * 3600);

pub(super) struct Backend {
    pub(super) client: Client,
    pub(super) progress: Arc<Progress>,
    pub(super) durability: &'static str,
    pub(super) counts: side::Counts,
    /// Most bytes of suspended executions that the runtime keeps in memory, if it keeps any.
    pub(super) cache_bound: Option<usize>,
    pub(super) dispatchers: usize,
    pub(super) limit: Duration,
    /// None if turns and activities run in other processes.
    runtime: Option<Arc<Runtime>>,
}

/// The instance whose number an orchestration gets as its input.
pub(super) fn instance(number: usize) -> String {
    format!("case-{number:06}")
}

/// The output of the hello with this number.
pub(super) fn greeting(number: usize) -> String {
    format!("hello, {number}")
}

/// The output of an orchestration that adds up the results of its steps, which are their numbers.
pub(super) fn sum(steps: usize) -> String {
    (0..steps).sum::<usize>().to_string()
}

impl Backend {
    /// Opens a fresh store, starts the runtime and runs one orchestration, so that no figure includes the first one.
    pub(super) async fn open(args: &Args) -> Result<Self, String> {
        let side::Store { provider, durability, counts } = side::open(args).await?;
        let dispatchers = args.number("--dispatchers", 2)?;
        let (role, apart) = (args.text("--role", ""), args.text("--apart", ""));
        let mut options = RuntimeOptions {
            orchestration_concurrency: if role == "work" { 0 } else { dispatchers },
            worker_concurrency: if role == "turns" { 0 } else { dispatchers },
            ..RuntimeOptions::default()
        };
        if let poll @ 1.. = args.number("--poll-ms", 0)? {
            options.dispatcher_min_poll_interval = Duration::from_millis(poll);
        }
        let cache_bound = side::cache(&mut options, args)?;
        let progress = Arc::new(Progress::default());
        let activities = activities(&progress);
        let orchestrations = orchestrations(&progress, args.number("--steps", 10)?);
        let is_client_only = role.is_empty() && !apart.is_empty();
        let runtime = match is_client_only {
            true => None,
            false => {
                let store = Arc::clone(&provider);
                Some(Runtime::start_with_options(store, activities, orchestrations, options).await)
            }
        };
        let limit = Duration::from_secs(args.number("--limit-s", 120)?);
        let client = Client::new(provider);
        // A process with a role cannot run it alone.
        if role.is_empty() {
            start(&client, "warm-up", "Hello", "warm-up").await;
            wait(&client, "warm-up", limit).await.ok_or("the first orchestration did not end")?;
        }
        Ok(Self { client, progress, durability, counts, cache_bound, dispatchers, limit, runtime })
    }

    pub(super) async fn close(self) {
        if let Some(runtime) = self.runtime {
            runtime.shutdown(Some(0)).await;
        }
    }

    /// Starts `count` instances as fast as a few clients can, and waits until the end of the last one is committed.
    pub(super) async fn backlog(&self, orchestration: &'static str, count: usize) -> Duration {
        self.progress.expect(count);
        let begun = Instant::now();
        self.start_all(orchestration, count).await;
        // Some turns are not committed yet when the last orchestration reports its end.
        let tail = 2 * self.dispatchers;
        self.progress.drained(&self.client, begun, self.limit, tail).await
    }

    /// Starts instances that wait for a timer; returns how many of them do.
    pub(super) async fn sleepers(&self, count: usize) -> usize {
        self.progress.expect(count);
        let begun = Instant::now();
        self.start_all("Sleep", count).await;
        let mut asleep = 0;
        for number in 0..count {
            while !self.is_asleep(number).await && begun.elapsed() < self.limit {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            asleep += usize::from(self.is_asleep(number).await);
        }
        asleep
    }

    /// Whether the instance has created its timer in a committed turn.
    async fn is_asleep(&self, number: usize) -> bool {
        self.progress.knows(number)
            && matches!(
                self.client.get_orchestration_status(&instance(number)).await,
                Ok(OrchestrationStatus::Running { .. })
            )
    }

    pub(super) async fn start_all(&self, orchestration: &'static str, count: usize) {
        self.start_numbers(orchestration, 0..count).await;
    }

    pub(super) async fn start_numbers(&self, orchestration: &'static str, numbers: std::ops::Range<usize>) {
        let mut starters = JoinSet::new();
        for first in 0..STARTERS {
            let (client, numbers) = (self.client.clone(), numbers.clone());
            starters.spawn(async move {
                for number in numbers.skip(first).step_by(STARTERS) {
                    start(&client, &instance(number), orchestration, &number.to_string()).await;
                }
            });
        }
        while starters.join_next().await.is_some() {}
    }

    /// Checks the output of every instance of a backlog.
    pub(super) async fn census(&self, outcome: &mut Outcome, right: impl Fn(usize) -> String) {
        self.check(outcome, 0..outcome.expected, right).await;
    }

    /// Checks the output of hellos.
    pub(super) async fn count_hellos(&self, outcome: &mut Outcome, numbers: std::ops::Range<usize>) {
        self.check(outcome, numbers, greeting).await;
    }

    async fn check(
        &self,
        outcome: &mut Outcome,
        numbers: std::ops::Range<usize>,
        right: impl Fn(usize) -> String,
    ) {
        for number in numbers {
            match self.client.get_orchestration_status(&instance(number)).await {
                Ok(OrchestrationStatus::Completed { output, .. }) => {
                    outcome.ended(Some(&output), &right(number));
                }
                Ok(OrchestrationStatus::Failed { .. }) => outcome.ended(None, ""),
                _ => {}
            }
        }
    }
}

/// Starts an instance; an overloaded store may refuse for a while.
pub(super) async fn start(client: &Client, instance: &str, orchestration: &str, input: &str) {
    while let Err(error) = client.start_orchestration(instance, orchestration, input).await {
        retry(error).await;
    }
}

/// Waits for an instance with the client; returns its output, or `None` if it failed or did not end in time.
pub(super) async fn wait(client: &Client, instance: &str, limit: Duration) -> Option<String> {
    let begun = Instant::now();
    loop {
        match client.wait_for_orchestration(instance, limit.saturating_sub(begun.elapsed())).await {
            Ok(OrchestrationStatus::Completed { output, .. }) => return Some(output),
            Ok(_) | Err(ClientError::Timeout) => return None,
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
    let [hello, chain, fan_out, sleep] = [(); 4].map(|()| Arc::clone(progress));
    OrchestrationRegistry::builder()
        .register("Hello", move |ctx: OrchestrationContext, number: String| {
            let progress = Arc::clone(&hello);
            async move {
                let greeting = ctx.schedule_activity("Greet", number.as_str()).await?;
                progress.reached(&number);
                Ok(greeting)
            }
        })
        .register("Chain", move |ctx: OrchestrationContext, number: String| {
            let progress = Arc::clone(&chain);
            async move {
                let mut results = Vec::new();
                for step in 0..steps {
                    results.push(ctx.schedule_activity("Step", step.to_string()).await);
                }
                progress.reached(&number);
                added(results)
            }
        })
        .register("FanOut", move |ctx: OrchestrationContext, number: String| {
            let progress = Arc::clone(&fan_out);
            async move {
                let all = (0..steps).map(|step| ctx.schedule_activity("Step", step.to_string())).collect();
                let results = ctx.join(all).await;
                progress.reached(&number);
                added(results)
            }
        })
        .register("Sleep", move |ctx: OrchestrationContext, number: String| {
            let progress = Arc::clone(&sleep);
            async move {
                progress.reached(&number);
                ctx.schedule_timer(NIGHT).await;
                Ok(number)
            }
        })
        .build()
}

fn added(results: Vec<Result<String, String>>) -> Result<String, String> {
    let mut sum = 0;
    for result in results {
        sum += result?.parse::<usize>().map_err(|error| error.to_string())?;
    }
    Ok(sum.to_string())
}
