//! The counts that a runtime keeps by itself, whether or not anybody exports metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// Declares a snapshot and the live counters behind it, so that neither can have a field that the other lacks.
macro_rules! counters {
    ($(#[$doc:meta])* $snapshot:ident from $counters:ident { $($(#[$field_doc:meta])* $field:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default, Clone, PartialEq, Eq)]
        pub struct $snapshot {
            $($(#[$field_doc])* pub $field: u64,)*
        }

        #[derive(Debug, Default)]
        pub(super) struct $counters {
            $(pub(super) $field: Counter,)*
        }

        impl $counters {
            pub(super) fn snapshot(&self) -> $snapshot {
                $snapshot { $($field: self.$field.get(),)* }
            }
        }
    };
}

/// A count that only grows.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn bump(&self) {
        self.add(1);
    }

    pub(super) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

counters! {
    /// What a runtime has counted since it started.
    MetricsSnapshot from Counters {
        /// Executions started.
        orch_starts,
        /// Executions that ended, whichever way.
        orch_completions,
        /// Executions that failed.
        orch_failures,
        /// Executions that failed by an error of their own.
        orch_application_errors,
        /// Executions that failed by an error of the store or the runtime.
        orch_infrastructure_errors,
        /// Executions that failed by an error of deployment, such as code that no longer fits the history.
        orch_configuration_errors,
        /// Orchestration messages that were delivered too often.
        orch_poison,
        /// Activities that succeeded.
        activity_success,
        /// Activities that returned an error or panicked.
        activity_app_errors,
        /// Activities that failed by an error of the store or the runtime.
        activity_infra_errors,
        /// Activities that failed by an error of deployment.
        activity_config_errors,
        /// Activities that were delivered too often.
        activity_poison,
        /// Turns fetched.
        orch_dispatcher_items_fetched,
        /// Activities fetched.
        worker_dispatcher_items_fetched,
        /// Executions that continued as new.
        orch_continue_as_new,
        /// Sub-orchestrations called.
        suborchestration_calls,
        /// Calls of the store that failed.
        provider_errors,
    }
}

counters! {
    /// What a runtime has counted since it started, beyond the contract's [`MetricsSnapshot`].
    OutlastMetricsSnapshot from OutlastCounters {
        /// Turns that went on from an execution in memory.
        warm_hits,
        /// Turns that had to replay their history.
        warm_misses,
        /// Turns that were run ahead of the store, with or without success.
        turns_ahead,
        /// Executions that were dropped from memory to stay within bounds.
        warm_evictions,
        /// Leases of turns, activities and sessions that were lost while in use.
        leases_lost,
        /// Commits that were repeated after an error.
        commit_retries,
        /// Messages that were dropped without effect.
        dropped_messages,
        /// Activities that a retry policy scheduled once more.
        activity_retries,
    }
}
