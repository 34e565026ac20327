//! The pump: starts instances, a bounded number at once, for a while, and counts how they end.

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

/// Two starts are this far apart.
const STEP: Duration = Duration::from_millis(1);
/// How long instances that are still under way may take when no more are started.
const STRAGGLERS: Duration = Duration::from_secs(120);
/// How soon a store that does not wait for work is asked again.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The input of every instance.
#[derive(Serialize, Deserialize)]
pub(super) struct Input {
    pub(super) task_count: usize,
}

/// Runs instances of `FanoutOrchestration`, which the registry must have, with input `{"task_count": ..}`, on a runtime of
/// its own. The figures are in the result, failures of instances included; an error is a run that could not be made.
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

/// [`run_stress_test`], with counts that can be read while it goes on.
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

/// A run whose instances run this many activities each.
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

/// The number to begin with: behind the instances that an earlier run left in the store. They have ended, so that waiting
/// for them again would take no time and make the figures too good.
async fn first_free(client: &Client) -> Result<usize, ClientError> {
    let (mut taken, mut free) = (0, 1);
    // Earlier runs numbered without gaps. `taken` counts what is known to be there, `free - 1` is where to look next.
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

/// Starts instances until the time is over, and waits for the last of them.
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

/// The next outcome. Instances get on only while this is waited for.
async fn ended<F: Future>(in_flight: &mut FuturesUnordered<F>) -> F::Output {
    match in_flight.next().await {
        Some(outcome) => outcome,
        None => pending().await,
    }
}

/// How one instance ended, with the time that it took; `None` if it could not be started or did not end in time.
async fn fly(config: &StressTestConfig, client: &Client, number: usize) -> Outcome {
    let began = Instant::now();
    let instance = instance(number);
    let input = Input { task_count: config.tasks_per_instance };
    client.start_orchestration_typed(&instance, ORCHESTRATION, input).await.ok()?;
    let patience = Duration::from_secs(config.wait_timeout_secs);
    match client.wait_for_orchestration(&instance, patience).await.ok()? {
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
