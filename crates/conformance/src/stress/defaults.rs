//! What runs in a stress run unless it brings its own: a fan-out of activities that only take time.

use super::run::Input;
use outlast_engine::OrchestrationContext;
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use std::time::Duration;

/// The orchestration that every stress run starts.
pub(super) const ORCHESTRATION: &str = "FanoutOrchestration";

/// `ProcessTask`: takes this long and returns what it was given.
pub fn create_default_activities(delay_ms: u64) -> ActivityRegistry {
    let process = move |_, task: String| async move {
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        Ok(format!("processed: {task}"))
    };
    ActivityRegistry::builder().register("ProcessTask", process).build()
}

/// `FanoutOrchestration`: runs as many `ProcessTask` at once as its input says, and waits for all of them.
pub fn create_default_orchestrations() -> OrchestrationRegistry {
    let fan_out = |ctx: OrchestrationContext, input: Input| async move {
        let tasks = (0..input.task_count).map(|n| ctx.schedule_activity("ProcessTask", format!("task-{n}")));
        let results = ctx.join_all(tasks.collect::<Vec<_>>()).await;
        let done = results.into_iter().collect::<Result<Vec<String>, String>>()?;
        Ok(format!("{} tasks", done.len()))
    };
    OrchestrationRegistry::builder().register_typed(ORCHESTRATION, fan_out).build()
}
