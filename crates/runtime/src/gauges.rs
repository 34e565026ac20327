//! Figures that only the store knows, read from time to time.

use crate::core::Core;
use std::sync::Arc;
use std::time::Duration;

pub(crate) async fn poll_gauges(core: Arc<Core>) {
    let every = core.options.observability.gauge_poll_interval.max(Duration::from_millis(10));
    loop {
        read(&core).await;
        tokio::time::sleep(every).await;
    }
}

async fn read(core: &Core) {
    let (executions, bytes) = core.warm.size();
    core.metrics.update_warm_cache(executions as u64, bytes as u64);
    let Some(admin) = core.store.as_management_capability() else { return };
    if let Ok(metrics) = admin.get_system_metrics().await {
        let running = i64::try_from(metrics.running_instances).unwrap_or(i64::MAX);
        core.metrics.set_active_orchestrations(running);
    }
    if let Ok(depths) = admin.get_queue_depths().await {
        core.metrics.update_queue_depths(depths.orchestrator_queue as u64, depths.worker_queue as u64);
    }
}
