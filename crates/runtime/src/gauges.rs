//! Gauges that are read from the store at `gauge_poll_interval`. The runtime does not count instances itself: with several
//! processes, restarts and crashes only the store has the number of running instances.

use crate::core::Core;
use outlast_provider::ErrorClass;
use std::sync::Arc;
use std::time::Duration;

/// Reads the gauges at every interval.
pub(crate) async fn poll_gauges(core: Arc<Core>) {
    let every = core.options.observability.gauge_poll_interval.max(Duration::from_millis(10));
    loop {
        read(&core).await;
        tokio::time::sleep(every).await;
    }
}

/// Reads the gauges once. After an error of the store the gauges keep their values.
async fn read(core: &Core) {
    let (executions, bytes) = core.warm.size();
    core.metrics.update_warm_cache(executions as u64, bytes as u64);
    let Some(admin) = core.store.as_management_capability() else { return };
    let read = match admin.get_gauges().await {
        Ok(gauges) => {
            core.metrics.update_store_gauges(&gauges);
            admin.count_held().await
        }
        Err(error) => Err(error),
    };
    match read {
        Ok(Some(held)) => core.metrics.update_held_gauges(held),
        Ok(None) => {}
        Err(error) => {
            let error_type = ErrorClass::of(&error).label();
            tracing::debug!(target: "duroxide::runtime", error_type, "the gauges keep their values: the store returned an error");
        }
    }
}
