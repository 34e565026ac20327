//! The runs.

use super::LargePayloadConfig;
use crate::stress::defaults::ORCHESTRATION;
use crate::stress::parallel_orchestrations::ProviderStressFactory;
use crate::stress::run::{Input, run};
use crate::stress::{StressProgress, StressTestConfig, StressTestResult};
use outlast_engine::OrchestrationContext;
use outlast_provider::Provider;
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// Activities of each child: with them an instance and its children come to about eighty events.
const PER_CHILD: usize = 2;

/// Runs the default configuration.
///
/// Cancellation safety: as [`run_stress_test`](crate::stress::run_stress_test).
pub async fn run_large_payload_test(
    factory: &dyn ProviderStressFactory,
) -> Result<StressTestResult, Box<dyn Error>> {
    run_large_payload_test_with_config(factory, LargePayloadConfig::default()).await
}

/// Runs instances whose activities and children take and return payloads of all three sizes.
///
/// Cancellation safety: as [`run_stress_test`](crate::stress::run_stress_test).
pub async fn run_large_payload_test_with_config(
    factory: &dyn ProviderStressFactory,
    config: LargePayloadConfig,
) -> Result<StressTestResult, Box<dyn Error>> {
    let provider = factory.create_provider().await;
    run_large_payload_test_observed(config, provider, &StressProgress::default()).await
}

/// Runs the instances of [`run_large_payload_test_with_config`] on an open store, with counts that can be read during the run.
///
/// Cancellation safety: as [`run_stress_test`](crate::stress::run_stress_test).
pub async fn run_large_payload_test_observed(
    config: LargePayloadConfig,
    provider: Arc<dyn Provider>,
    progress: &StressProgress,
) -> Result<StressTestResult, Box<dyn Error>> {
    let (activities, orchestrations) = (activities(&config.base), orchestrations(&config));
    let per_instance = config.activity_count + config.sub_orch_count * PER_CHILD;
    run(config.base, provider, activities, orchestrations, per_instance, progress).await
}

/// `Echo`: returns a payload as large as the one it was given.
fn activities(config: &StressTestConfig) -> ActivityRegistry {
    let delay = Duration::from_millis(config.activity_delay_ms);
    let echo = move |_, payload: String| async move {
        tokio::time::sleep(delay).await;
        Ok(payload)
    };
    ActivityRegistry::builder().register("Echo", echo).build()
}

fn orchestrations(config: &LargePayloadConfig) -> OrchestrationRegistry {
    let sizes = [config.small_payload_kb, config.medium_payload_kb, config.large_payload_kb];
    let (activity_count, sub_orch_count) = (config.activity_count, config.sub_orch_count);
    let payload = move |n: usize| payload(n, sizes[n % sizes.len()]);
    let parent = move |ctx: OrchestrationContext, _: Input| async move {
        let echoes = (0..activity_count).map(|n| ctx.schedule_activity("Echo", payload(n)));
        let children = (0..sub_orch_count).map(|n| ctx.schedule_sub_orchestration("Child", payload(n)));
        let results = ctx.join_all(echoes.chain(children).collect::<Vec<_>>()).await;
        for (n, result) in results.into_iter().enumerate() {
            let sent = if n < activity_count { n } else { n - activity_count };
            same(&result?, &payload(sent))?;
        }
        Ok(payload(0))
    };
    let child = |ctx: OrchestrationContext, payload: String| async move {
        for _ in 0..PER_CHILD {
            same(&ctx.schedule_activity("Echo", payload.clone()).await?, &payload)?;
        }
        Ok(payload)
    };
    OrchestrationRegistry::builder().register_typed(ORCHESTRATION, parent).register("Child", child).build()
}

/// A payload of a size, different for each number, so that swapped payloads are noticed.
fn payload(number: usize, kb: usize) -> String {
    let line = format!("payload {number:>8} ");
    line.repeat((kb * 1024).div_ceil(line.len()))
}

fn same(received: &str, sent: &str) -> Result<(), String> {
    if received == sent {
        return Ok(());
    }
    Err(format!("sent {} bytes and received {} others", sent.len(), received.len()))
}
