//! The counters that a runtime keeps in memory, with or without an exporter of metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// Declares a snapshot and its live counters with the same fields.
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

/// A counter that only grows.
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
    /// The counters of a runtime since its start.
    MetricsSnapshot from Counters {
        /// Executions started.
        orch_starts,
        /// Executions that completed, failed or continued as new.
        orch_completions,
        /// Executions that failed.
        orch_failures,
        /// Executions that failed with an error of their code.
        orch_application_errors,
        /// Executions that failed with an error of the store or the runtime.
        orch_infrastructure_errors,
        /// Executions that failed with an error of deployment, such as code that does not match the history.
        orch_configuration_errors,
        /// Instances that failed because their messages were delivered too often.
        orch_poison,
        /// Activities that succeeded.
        activity_success,
        /// Activities that returned an error or panicked.
        activity_app_errors,
        /// Activities whose outcome the store did not accept.
        activity_infra_errors,
        /// Activities that failed with an error of deployment.
        activity_config_errors,
        /// Activities that failed because they were delivered too often.
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
    /// The counters of a runtime since its start that the contract's [`MetricsSnapshot`] does not have.
    OutlastMetricsSnapshot from OutlastCounters {
        /// Turns that used an entry of the warm cache.
        warm_hits,
        /// Turns that replayed their history.
        warm_misses,
        /// Turns that were run ahead, committed and rejected ones.
        turns_ahead,
        /// Entries that were evicted from the warm cache.
        warm_evictions,
        /// Leases of turns and activities that were lost while in use.
        leases_lost,
        /// Commits that were repeated after an error.
        commit_retries,
        /// Messages that were dropped without effect.
        dropped_messages,
        /// Activities that a retry policy scheduled again.
        activity_retries,
    }
}
