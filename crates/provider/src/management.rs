//! Values of the management interface, and its older form.

use crate::ProviderError;
use outlast_model::Event;

/// One instance, as an operator sees it. Times are milliseconds since the Unix epoch.
#[derive(Debug, Clone)]
pub struct InstanceInfo {
    /// The instance.
    pub instance_id: String,
    /// Its orchestration.
    pub orchestration_name: String,
    /// Its version, `"unknown"` when nothing is stored.
    pub orchestration_version: String,
    /// The current execution: the one with the highest id.
    pub current_execution_id: u64,
    /// Status of that execution.
    pub status: String,
    /// Output of that execution.
    pub output: Option<String>,
    /// When the instance was created.
    pub created_at: u64,
    /// When a turn of the instance was last committed.
    pub updated_at: u64,
    /// The instance that started this instance as its child.
    pub parent_instance_id: Option<String>,
}

/// One execution of an instance.
#[derive(Debug, Clone)]
pub struct ExecutionInfo {
    /// The execution.
    pub execution_id: u64,
    /// Its status.
    pub status: String,
    /// Its output.
    pub output: Option<String>,
    /// When its first turn was committed.
    pub started_at: u64,
    /// When it got a final status; `None` while it runs.
    pub completed_at: Option<u64>,
    /// How many events are stored for it.
    pub event_count: usize,
}

/// Totals over the whole store.
#[derive(Debug, Clone, Default)]
pub struct SystemMetrics {
    /// All instances.
    pub total_instances: u64,
    /// All executions of all instances.
    pub total_executions: u64,
    /// Instances whose current execution runs.
    pub running_instances: u64,
    /// Instances whose current execution completed.
    pub completed_instances: u64,
    /// Instances whose current execution failed.
    pub failed_instances: u64,
    /// All events of all executions.
    pub total_events: u64,
}

/// Waiting messages, delayed ones included, those under a live lease excluded.
#[derive(Debug, Clone, Default)]
pub struct QueueDepths {
    /// Messages that wait for instances.
    pub orchestrator_queue: usize,
    /// Activities that wait for workers.
    pub worker_queue: usize,
    /// Always 0: timers are delayed messages of the orchestrator queue.
    pub timer_queue: usize,
}

/// Selects instances; all given conditions must hold.
#[derive(Debug, Clone, Default)]
pub struct InstanceFilter {
    /// Only these ids.
    pub instance_ids: Option<Vec<String>>,
    /// Only if the current execution ended before this time.
    pub completed_before: Option<u64>,
    /// At most this many, 1000 if not given.
    pub limit: Option<u32>,
}

/// Selects executions to remove; all given conditions must hold.
#[derive(Debug, Clone, Default)]
pub struct PruneOptions {
    /// Keep this many newest executions.
    pub keep_last: Option<u32>,
    /// Only executions that ended before this time.
    pub completed_before: Option<u64>,
}

/// The counts of a deletion.
#[derive(Debug, Clone, Default)]
pub struct DeleteInstanceResult {
    /// How many instances were removed, descendants included.
    pub instances_deleted: u64,
    /// How many executions were removed.
    pub executions_deleted: u64,
    /// How many events were removed.
    pub events_deleted: u64,
    /// How many messages and activities were removed.
    pub queue_messages_deleted: u64,
}

/// The counts of a prune.
#[derive(Debug, Clone, Default)]
pub struct PruneResult {
    /// How many instances were examined.
    pub instances_processed: u64,
    /// Executions removed.
    pub executions_deleted: u64,
    /// Events removed.
    pub events_deleted: u64,
}

/// An instance and all its descendants.
#[derive(Debug, Clone)]
pub struct InstanceTree {
    /// The requested instance.
    pub root_id: String,
    /// The instance and its descendants; the root comes first.
    pub all_ids: Vec<String>,
}

impl InstanceTree {
    /// Whether there are no descendants.
    pub fn is_root_only(&self) -> bool {
        self.all_ids.len() == 1
    }

    /// Number of instances, the root included.
    pub fn size(&self) -> usize {
        self.all_ids.len()
    }
}

/// An older management interface, kept for programs that implement it. Nothing in Outlast calls it;
/// [`ProviderAdmin`](crate::ProviderAdmin) is the one in use.
#[async_trait::async_trait]
pub trait ManagementProvider: Send + Sync {
    /// All instance ids.
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        Ok(Vec::new())
    }

    /// Ids of instances with a status.
    async fn list_instances_by_status(&self, _status: &str) -> Result<Vec<String>, ProviderError> {
        Ok(Vec::new())
    }

    /// Execution ids of an instance.
    async fn list_executions(&self, _instance: &str) -> Result<Vec<u64>, ProviderError> {
        Ok(vec![1])
    }

    /// Events of an execution.
    async fn read_execution(&self, instance: &str, _execution_id: u64) -> Result<Vec<Event>, ProviderError> {
        Err(not_supported("read_execution", instance))
    }

    /// The newest execution id.
    async fn latest_execution_id(&self, _instance: &str) -> Result<u64, ProviderError> {
        Ok(1)
    }

    /// One instance.
    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        Err(not_supported("get_instance_info", instance))
    }

    /// One execution.
    async fn get_execution_info(
        &self,
        instance: &str,
        _execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        Err(not_supported("get_execution_info", instance))
    }

    /// Totals.
    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        Ok(SystemMetrics::default())
    }

    /// Waiting messages.
    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        Ok(QueueDepths::default())
    }
}

fn not_supported(operation: &str, instance: &str) -> ProviderError {
    ProviderError::permanent(operation, format!("not supported for instance: {instance}"))
}
