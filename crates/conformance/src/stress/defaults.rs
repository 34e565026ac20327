//! The default orchestration of a stress run: a fan-out of activities that only wait.

use super::run::Input;
use outlast_engine::OrchestrationContext;
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use std::time::Duration;

/// The orchestration that every stress run starts.
pub(super) const ORCHESTRATION: &str = "FanoutOrchestration";

/// `ProcessTask`: waits for this time and returns its input.
pub fn create_default_activities(delay_ms: u64) -> ActivityRegistry {
    let process = move |_, task: String| async move {
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        Ok(format!("processed: {task}"))
    };
    ActivityRegistry::builder().register("ProcessTask", process).build()
}

/// `FanoutOrchestration`: runs the number of `ProcessTask` in its input at the same time, and waits for all of them.
pub fn create_default_orchestrations() -> OrchestrationRegistry {
    let fan_out = |ctx: OrchestrationContext, input: Input| async move {
        let tasks = (0..input.task_count).map(|n| ctx.schedule_activity("ProcessTask", format!("task-{n}")));
        let results = ctx.join_all(tasks.collect::<Vec<_>>()).await;
        let done = results.into_iter().collect::<Result<Vec<String>, String>>()?;
        Ok(format!("{} tasks", done.len()))
    };
    OrchestrationRegistry::builder().register_typed(ORCHESTRATION, fan_out).build()
}
