//! The metrics of each store operation.

use metrics::{counter, histogram};
use outlast_provider::{ErrorClass, ProviderError};

/// Declares the operations with their labels. All labels are literals, so that the key of a histogram is static and recording
/// allocates nothing.
macro_rules! operations {
    ($($operation:ident, $name:literal, $group:literal $(, $milliseconds:literal)?;)*) => {
        /// An operation of a store. Operations beyond the contract use the name of the contract's operation that they replace (api 9.2):
        /// `fetch_turn` is recorded as `fetch_orchestration_item`, `fetch_work_items` as `fetch_work_item`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Operation {
            $($operation,)*
        }

        impl Operation {
            /// The label `operation`.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$operation => $name,)*
                }
            }

            /// The label `operation` of `provider.infrastructure_errors`.
            fn group(self) -> &'static str {
                match self {
                    $(Self::$operation => $group,)*
                }
            }

            /// Records the duration of a call.
            pub(crate) fn record(self, seconds: f64, has_succeeded: bool) {
                match self {
                    $(Self::$operation => {
                        let histogram = match has_succeeded {
                            true => histogram!(
                                "duroxide_provider_operation_duration_seconds",
                                "operation" => $name,
                                "status" => "success"
                            ),
                            false => histogram!(
                                "duroxide_provider_operation_duration_seconds",
                                "operation" => $name,
                                "status" => "error"
                            ),
                        };
                        histogram.record(seconds);
                        $(histogram!($milliseconds).record(seconds * 1000.0);)?
                    })*
                }
            }
        }
    };
}

operations! {
    FetchOrchestrationItem, "fetch_orchestration_item", "fetch", "provider.fetch_orchestration_item_duration_ms";
    AckOrchestrationItem, "ack_orchestration_item", "ack_orch", "provider.ack_orchestration_item_duration_ms";
    AbandonOrchestrationItem, "abandon_orchestration_item", "abandon_orchestration_item";
    Read, "read", "read";
    ReadWithExecution, "read_with_execution", "read_with_execution";
    AppendWithExecution, "append_with_execution", "append_with_execution";
    EnqueueWorker, "enqueue_worker", "enqueue";
    FetchWorkItem, "fetch_work_item", "fetch", "provider.dequeue_worker_duration_ms";
    AckWorkItem, "ack_work_item", "ack_worker", "provider.ack_worker_duration_ms";
    RenewWorkItemLock, "renew_work_item_lock", "renew_work_item_lock";
    RenewSessionLock, "renew_session_lock", "renew_session_lock";
    CleanupOrphanedSessions, "cleanup_orphaned_sessions", "cleanup_orphaned_sessions";
    AbandonWorkItem, "abandon_work_item", "abandon_work_item";
    RenewOrchestrationItemLock, "renew_orchestration_item_lock", "renew_orchestration_item_lock";
    EnqueueOrchestrator, "enqueue_orchestrator", "enqueue", "provider.enqueue_orchestrator_duration_ms";
    GetCustomStatus, "get_custom_status", "get_custom_status";
    GetKvValue, "get_kv_value", "get_kv_value";
    GetKvAllValues, "get_kv_all_values", "get_kv_all_values";
    GetInstanceStats, "get_instance_stats", "get_instance_stats";
    LoadTurn, "load_turn", "load_turn";
    ReadOutcome, "read_outcome", "read_outcome";
    StartOrchestration, "start_orchestration", "enqueue", "provider.enqueue_orchestrator_duration_ms";
}

impl Operation {
    /// Counts an error of the store. Errors that the caller's arguments caused are not counted.
    pub(crate) fn failed(self, class: ErrorClass, error: &ProviderError) {
        if class.is_infrastructure(error) {
            counter!(
                "provider.infrastructure_errors",
                "operation" => self.group(),
                "error_type" => class.infrastructure_label(),
            )
            .increment(1);
        }
    }
}
