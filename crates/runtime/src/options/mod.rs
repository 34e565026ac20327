//! How a runtime behaves.

mod debug;
mod renewal;
mod validate;

pub use outlast_engine::ParentClosePolicy;
pub use validate::OptionProblem;

use crate::observability::ObservabilityConfig;
use outlast_model::codec::Codec;
use outlast_model::limits::Limits;
use outlast_provider::{Clock, Entropy, OsEntropy, SemverRange, SystemClock, TagFilter};
use std::sync::Arc;
use std::time::Duration;

/// How a runtime behaves. Every field has a default: write `RuntimeOptions { worker_concurrency: 8, ..Default::default() }`
/// and check with [`RuntimeOptions::validate`].
#[derive(Clone)]
pub struct RuntimeOptions {
    /// How soon a fetch that found nothing may be repeated, if the store does not wait by itself.
    pub dispatcher_min_poll_interval: Duration,
    /// How long a fetch may wait in the store for work.
    pub dispatcher_long_poll_timeout: Duration,
    /// Most turns at once in this runtime; 0 for a node that only runs activities.
    pub orchestration_concurrency: usize,
    /// Most activities at once in this runtime; 0 for a node that only runs orchestrations.
    pub worker_concurrency: usize,
    /// How long a turn is leased; it is renewed while it runs, so this is how long a crash delays its instance.
    pub orchestrator_lock_timeout: Duration,
    /// How long before its end a turn's lease is renewed; at the latest after half of it.
    pub orchestrator_lock_renewal_buffer: Duration,
    /// How long an activity is leased; it is renewed while it runs, so this is how long a crash delays it.
    pub worker_lock_timeout: Duration,
    /// How long before its end an activity's lease is renewed; at the latest after half of it.
    pub worker_lock_renewal_buffer: Duration,
    /// Logs and metrics.
    pub observability: ObservabilityConfig,
    /// How long work waits whose handler this runtime does not know.
    pub unregistered_backoff: UnregisteredBackoffConfig,
    /// How often a message may be delivered; one more, and it is poison.
    pub max_attempts: u32,
    /// How long a cancelled activity may take to end before it is aborted.
    pub activity_cancellation_grace_period: Duration,
    /// Which executions this runtime replays, by the version of the contract they were started under. `None`: all up to
    /// its own.
    pub supported_replay_versions: Option<SemverRange>,
    /// How long a session is leased; it is renewed while it is used.
    pub session_lock_timeout: Duration,
    /// How long before its end a session's lease is renewed; at the latest after half of it.
    pub session_lock_renewal_buffer: Duration,
    /// How long a session may be unused before it is given up; longer than an activity goes without renewal.
    pub session_idle_timeout: Duration,
    /// How often expired sessions are removed.
    pub session_cleanup_interval: Duration,
    /// Most sessions with running activities at once; 0 for a node that takes no session-bound work.
    pub max_sessions_per_runtime: usize,
    /// Name of this node as the owner of sessions, so that they survive a restart. `None`: one owner per worker slot.
    pub worker_node_id: Option<String>,
    /// Which activities this runtime takes.
    pub worker_tag_filter: TagFilter,
    /// What one instance may use.
    pub limits: Limits,
    /// Whether the texts with which orchestrations and activities fail are logged, shortened. They are written by your code,
    /// or by a decoder that quotes what it could not read, so they may hold what is in payloads; without this the log says
    /// how long the text is, and the status of the instance has it.
    pub log_error_texts: bool,
    /// Most suspended executions that are kept in memory, so that they need no replay; 0 keeps none.
    pub warm_executions: usize,
    /// Most bytes, estimated, of suspended executions that are kept in memory.
    pub warm_bytes: usize,
    /// Whether an event that arrives before anybody waits for it is kept for the next wait of its name. The contract
    /// drops it, and histories made under one setting are replayed under it: do not change this under running instances.
    pub buffer_early_signals: bool,
    /// How typed values are written. Clients of the store must use the same, see [`Client::with_codec`](crate::Client::with_codec).
    pub codec: Codec,
    /// What happens to children that still run when their parent ends.
    pub parent_close: ParentClosePolicy,
    /// Where the runtime reads the time.
    pub clock: Arc<dyn Clock>,
    /// Where the runtime takes random bits from.
    pub entropy: Arc<dyn Entropy>,
    /// Decides when the tasks of this runtime are polled, for tests.
    #[cfg(feature = "test-hooks")]
    #[doc(hidden)]
    pub pulse: Option<Arc<dyn crate::test_hooks::Pulse>>,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        Self {
            dispatcher_min_poll_interval: Duration::from_millis(100),
            dispatcher_long_poll_timeout: Duration::from_secs(30),
            orchestration_concurrency: 2,
            worker_concurrency: 2,
            orchestrator_lock_timeout: Duration::from_secs(5),
            orchestrator_lock_renewal_buffer: Duration::from_secs(2),
            worker_lock_timeout: Duration::from_secs(30),
            worker_lock_renewal_buffer: Duration::from_secs(5),
            observability: ObservabilityConfig::default(),
            unregistered_backoff: UnregisteredBackoffConfig::default(),
            max_attempts: 10,
            activity_cancellation_grace_period: Duration::from_secs(10),
            supported_replay_versions: None,
            session_lock_timeout: Duration::from_secs(30),
            session_lock_renewal_buffer: Duration::from_secs(5),
            session_idle_timeout: Duration::from_secs(300),
            session_cleanup_interval: Duration::from_secs(300),
            max_sessions_per_runtime: 10,
            worker_node_id: None,
            worker_tag_filter: TagFilter::DefaultOnly,
            limits: Limits::default(),
            log_error_texts: false,
            warm_executions: 10_000,
            warm_bytes: 256 * 1024 * 1024,
            buffer_early_signals: false,
            codec: Codec::Contract,
            parent_close: ParentClosePolicy::Contract,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(OsEntropy),
            #[cfg(feature = "test-hooks")]
            pulse: None,
        }
    }
}

/// How long work waits whose handler this runtime does not know; another node of a rolling update may.
#[derive(Debug, Clone)]
pub struct UnregisteredBackoffConfig {
    /// After the first delivery; doubled with each further one, at most six times.
    pub base_delay: Duration,
    /// The longest.
    pub max_delay: Duration,
}

impl Default for UnregisteredBackoffConfig {
    fn default() -> Self {
        Self { base_delay: Duration::from_secs(1), max_delay: Duration::from_secs(60) }
    }
}

impl UnregisteredBackoffConfig {
    /// The wait after this many deliveries.
    pub fn delay(&self, attempt_count: u32) -> Duration {
        let doublings = attempt_count.saturating_sub(1).min(6);
        self.base_delay.saturating_mul(1 << doublings).min(self.max_delay)
    }
}
