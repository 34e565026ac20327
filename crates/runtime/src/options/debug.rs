//! `Debug` for the options, written by hand because an observer, a clock and a source of entropy have none.

use super::RuntimeOptions;
use std::fmt;

/// Destructures the struct, so that a field that is missing in the list is a compile error.
macro_rules! debug_fields {
    ($f:expr, $options:expr, [$($field:ident),* $(,)?]) => {{
        let RuntimeOptions {
            $($field,)*
            observer: _,
            clock: _,
            entropy: _,
            #[cfg(feature = "replay-version-test")]
            stamp: _,
            #[cfg(feature = "test-hooks")]
            pulse: _,
        } = $options;
        $f.debug_struct("RuntimeOptions")$(.field(stringify!($field), $field))*.finish_non_exhaustive()
    }};
}

impl fmt::Debug for RuntimeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_fields!(
            f,
            self,
            [
                dispatcher_min_poll_interval,
                dispatcher_long_poll_timeout,
                orchestration_concurrency,
                worker_concurrency,
                orchestrator_lock_timeout,
                orchestrator_lock_renewal_buffer,
                worker_lock_timeout,
                worker_lock_renewal_buffer,
                observability,
                unregistered_backoff,
                max_attempts,
                activity_cancellation_grace_period,
                supported_replay_versions,
                session_lock_timeout,
                session_lock_renewal_buffer,
                session_idle_timeout,
                session_cleanup_interval,
                max_sessions_per_runtime,
                worker_node_id,
                worker_tag_filter,
                limits,
                log_error_texts,
                warm_executions,
                warm_bytes,
                buffer_early_signals,
                codec,
                parent_close,
                on_misfit,
                build_id,
                retention,
                node_heartbeat,
            ]
        )
    }
}
