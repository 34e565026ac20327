//! Starts instances for a given time, a bounded number at the same time, and counts their outcomes.

use super::defaults::ORCHESTRATION;
use super::{StressProgress, StressTestConfig, StressTestResult};
use futures::stream::{FuturesUnordered, StreamExt};
use outlast_provider::Provider;
use outlast_provider::model::ErrorDetails;
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use outlast_runtime::{Client, ClientError, OrchestrationStatus, Runtime, RuntimeOptions};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The time between two starts.
const STEP: Duration = Duration::from_millis(1);
/// The time for running instances to end when no more are started.
const STRAGGLERS: Duration = Duration::from_secs(120);
/// The poll interval for stores whose fetch does not wait.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The input of every instance.
#[derive(Serialize, Deserialize)]
pub(super) struct Input {
    pub(super) task_count: usize,
}

/// Runs instances of `FanoutOrchestration`, which the registry must have, with input `{"task_count": ..}`, on a runtime of
/// its own. Failures of instances are counted in the result; an error means that the run could not be made.
///
/// Cancellation safety: a dropped run leaves its runtime running until the end of the tokio runtime.
pub async fn run_stress_test(
    config: StressTestConfig,
    provider: Arc<dyn Provider>,
    activities: ActivityRegistry,
    orchestrations: OrchestrationRegistry,
) -> Result<StressTestResult, Box<dyn Error>> {
    run_stress_test_observed(config, provider, activities, orchestrations, &StressProgress::default()).await
}

/// [`run_stress_test`], with counts that can be read during the run.
///
/// Cancellation safety: as [`run_stress_test`].
pub async fn run_stress_test_observed(
    config: StressTestConfig,
    provider: Arc<dyn Provider>,
    activities: ActivityRegistry,
    orchestrations: OrchestrationRegistry,
    progress: &StressProgress,
) -> Result<StressTestResult, Box<dyn Error>> {
    let per_instance = config.tasks_per_instance;
    run(config, provider, activities, orchestrations, per_instance, progress).await
}

/// A run whose instances run this number of activities each.
pub(super) async fn run(
    config: StressTestConfig,
    provider: Arc<dyn Provider>,
    activities: ActivityRegistry,
    orchestrations: OrchestrationRegistry,
    activities_per_instance: usize,
    progress: &StressProgress,
) -> Result<StressTestResult, Box<dyn Error>> {
    if config.max_concurrent == 0 {
        return Err("max_concurrent is 0: no instance could ever be started".into());
    }
    if !orchestrations.has(ORCHESTRATION) {
        return Err(format!("the orchestration registry has no '{ORCHESTRATION}'").into());
    }
    let options = RuntimeOptions {
        orchestration_concurrency: config.orch_concurrency,
        worker_concurrency: config.worker_concurrency,
        dispatcher_min_poll_interval: POLL_INTERVAL,
        ..RuntimeOptions::default()
    };
    let builder = Runtime::builder().store(Arc::clone(&provider)).options(options);
    let runtime = builder.activities(activities).orchestrations(orchestrations).start().await?;
    let client = Client::new(provider);
    let first = first_free(&client).await?;
    let began = Instant::now();
    let counts = pump(&config, &client, first, progress).await;
    let total_time = began.elapsed();
    runtime.shutdown(None).await;
    Ok(counts.result(total_time, activities_per_instance))
}

fn instance(number: usize) -> String {
    format!("stress-test-{number}")
}

/// The first instance number that an earlier run on the store has not used. Instances of earlier runs have ended, so waiting for
/// them would take no time and distort the results.
async fn first_free(client: &Client) -> Result<usize, ClientError> {
    let (mut taken, mut free) = (0, 1);
    // Earlier runs numbered without gaps. `taken` is the number of instances known to exist, `free - 1` the next one to check.
    loop {
        match client.get_orchestration_status(&instance(free - 1)).await? {
            OrchestrationStatus::NotFound => break,
            _ => (taken, free) = (free, free * 2),
        }
    }
    while free - taken > 1 {
        let middle = taken + (free - taken) / 2;
        match client.get_orchestration_status(&instance(middle - 1)).await? {
            OrchestrationStatus::NotFound => free = middle,
            _ => taken = middle,
        }
    }
    Ok(taken)
}

/// Starts instances for the given time, and waits for the last of them.
async fn pump(config: &StressTestConfig, client: &Client, first: usize, progress: &StressProgress) -> Counts {
    let mut counts = Counts::default();
    let mut in_flight = FuturesUnordered::new();
    let mut next_start = Instant::now();
    let end = next_start + Duration::from_secs(config.duration_secs);
    while Instant::now() < end {
        let is_full = in_flight.len() >= config.max_concurrent;
        let until = if is_full { end } else { next_start.min(end) };
        match timeout_at(until, ended(&mut in_flight)).await {
            Ok(outcome) => counts.count(outcome, progress),
            Err(_) if is_full => {}
            Err(_) => {
                in_flight.push(fly(config, client, first + counts.launched));
                counts.launched += 1;
                progress.launch();
                next_start = Instant::now() + STEP;
            }
        }
    }
    let give_up = Instant::now() + STRAGGLERS;
    while let Ok(Some(outcome)) = timeout_at(give_up, in_flight.next()).await {
        counts.count(outcome, progress);
    }
    counts.failed += in_flight.len();
    progress.fail(in_flight.len());
    counts
}

/// The next outcome. Instances progress only while this is polled.
async fn ended<F: Future>(in_flight: &mut FuturesUnordered<F>) -> F::Output {
    match in_flight.next().await {
        Some(outcome) => outcome,
        None => pending().await,
    }
}

/// The outcome of one instance and its duration; `None` if it could not be started or did not end in time.
async fn fly(config: &StressTestConfig, client: &Client, number: usize) -> Outcome {
    let began = Instant::now();
    let instance = instance(number);
    let input = Input { task_count: config.tasks_per_instance };
    client.start_orchestration_typed(&instance, ORCHESTRATION, input).await.ok()?;
    let poll_timeout = Duration::from_secs(config.wait_timeout_secs);
    match client.wait_for_orchestration(&instance, poll_timeout).await.ok()? {
        OrchestrationStatus::Completed { .. } => Some(Ok(began.elapsed())),
        OrchestrationStatus::Failed { details, .. } => Some(Err(details)),
        OrchestrationStatus::NotFound | OrchestrationStatus::Running { .. } => None,
    }
}

type Outcome = Option<Result<Duration, ErrorDetails>>;

#[derive(Default)]
struct Counts {
    launched: usize,
    completed: usize,
    failed: usize,
    infrastructure: usize,
    configuration: usize,
    application: usize,
}

impl Counts {
    fn count(&mut self, outcome: Outcome, progress: &StressProgress) {
        if let Some(Ok(latency)) = outcome {
            self.completed += 1;
            progress.complete(latency);
            return;
        }
        self.failed += 1;
        progress.fail(1);
        match outcome {
            Some(Err(ErrorDetails::Infrastructure { .. } | ErrorDetails::Poison { .. })) => {
                self.infrastructure += 1;
            }
            Some(Err(ErrorDetails::Configuration { .. })) => self.configuration += 1,
            Some(Err(ErrorDetails::Application { .. })) => self.application += 1,
            _ => {}
        }
    }

    fn result(self, total_time: Duration, activities_per_instance: usize) -> StressTestResult {
        let (seconds, completed) = (total_time.as_secs_f64(), self.completed as f64);
        let per_second = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
        StressTestResult {
            launched: self.launched,
            completed: self.completed,
            failed: self.failed,
            failed_infrastructure: self.infrastructure,
            failed_configuration: self.configuration,
            failed_application: self.application,
            total_time,
            orch_throughput: per_second(completed),
            activity_throughput: per_second(completed * activities_per_instance as f64),
            avg_latency_ms: if self.completed == 0 { 0.0 } else { seconds * 1_000.0 / completed },
        }
    }
}
