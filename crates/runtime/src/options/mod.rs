//! The options of a runtime.

mod debug;
mod misfit;
mod renewal;
mod unregistered_backoff;
mod validate;

pub use misfit::OnMisfit;
pub use outlast_engine::ParentClosePolicy;
pub use unregistered_backoff::UnregisteredBackoffConfig;
pub use validate::OptionProblem;

use crate::observability::ObservabilityConfig;
use crate::observer::Observe;
use crate::retention::Retention;
use outlast_model::codec::Codec;
use outlast_model::limits::Limits;
use outlast_provider::{Clock, Entropy, OsEntropy, SemverRange, SystemClock, TagFilter};
use std::sync::Arc;
use std::time::Duration;

/// The options of a runtime. Every field has a default: write `RuntimeOptions { worker_concurrency: 8, ..Default::default() }`
/// and check with [`RuntimeOptions::validate`].
#[derive(Clone)]
pub struct RuntimeOptions {
    /// The least time between two fetches of a slot that return nothing, for stores whose fetch does not wait.
    pub dispatcher_min_poll_interval: Duration,
    /// The longest time for which a fetch waits in the store.
    pub dispatcher_long_poll_timeout: Duration,
    /// The most turns that run at the same time in this runtime; 0 for a node that only runs activities.
    pub orchestration_concurrency: usize,
    /// The most activities that run at the same time in this runtime; 0 for a node that only runs turns.
    pub worker_concurrency: usize,
    /// The length of a turn's lease. The runtime renews the lease during the turn, so this is the delay of an instance after a crash.
    pub orchestrator_lock_timeout: Duration,
    /// The time before its end at which a turn's lease is renewed. A lease is renewed after half of its length at the latest.
    pub orchestrator_lock_renewal_buffer: Duration,
    /// The length of an activity's lease. The runtime renews the lease while the activity runs, so this is the delay of an activity
    /// after a crash.
    pub worker_lock_timeout: Duration,
    /// The time before its end at which an activity's lease is renewed. A lease is renewed after half of its length at the latest.
    pub worker_lock_renewal_buffer: Duration,
    /// Logs and metrics.
    pub observability: ObservabilityConfig,
    /// The delay of turns and activities whose handler is not registered in this runtime.
    pub unregistered_backoff: UnregisteredBackoffConfig,
    /// The most deliveries of a message or activity. A message or activity that the store delivers once more is poisoned: its
    /// instance or activity fails without running.
    pub max_attempts: u32,
    /// The time after which a cancelled activity that still runs is aborted.
    pub activity_cancellation_grace_period: Duration,
    /// The versions of the contract whose executions this runtime replays. `None`: all versions up to its own.
    pub supported_replay_versions: Option<SemverRange>,
    /// The length of a session's lease. The runtime renews the lease while the session is used.
    pub session_lock_timeout: Duration,
    /// The time before its end at which a session's lease is renewed. A lease is renewed after half of its length at the latest.
    pub session_lock_renewal_buffer: Duration,
    /// The time without activity after which a session is no longer renewed. Must exceed the renewal interval of activities.
    pub session_idle_timeout: Duration,
    /// The interval at which expired sessions are removed.
    pub session_cleanup_interval: Duration,
    /// The most sessions with running activities at the same time; 0 for a node that runs no activities of sessions.
    pub max_sessions_per_runtime: usize,
    /// The name of this node as the owner of sessions, so that sessions survive a restart. `None`: one owner per activity slot.
    pub worker_node_id: Option<String>,
    /// The tags of the activities that this runtime runs.
    pub worker_tag_filter: TagFilter,
    /// The limits of one instance.
    pub limits: Limits,
    /// Whether the messages of failed orchestrations and activities are logged, truncated. They come from your code, or from a decoder
    /// that quotes its input, so they may hold payloads. Without this option the log has the length of the message and the command
    /// that prints it.
    pub log_error_texts: bool,
    /// The most entries of the warm cache, which keeps suspended executions in memory so that they need no replay; 0 for no cache.
    pub warm_executions: usize,
    /// The most bytes of the warm cache, estimated.
    pub warm_bytes: usize,
    /// Whether an event that arrives before a wait for its name is kept for the next wait. The contract drops it. An execution is
    /// replayed with the setting that it was started with: do not change this option while instances run.
    pub buffer_early_signals: bool,
    /// The codec for typed values. Clients of the store must use the same, see [`Client::with_codec`](crate::Client::with_codec).
    pub codec: Codec,
    /// The policy for children that still run when their parent ends.
    pub parent_close: ParentClosePolicy,
    /// The policy for instances whose code does not match their history or panics, or whose orchestration no node registers.
    pub on_misfit: OnMisfit,
    /// The name of this build of the program; it should change with every build that runs, as a commit does. With [`OnMisfit::Park`] a
    /// runtime releases at its start the instances that another build has parked; without a name, all parked instances. Every 30
    /// seconds it releases those of a build that has no live node any more.
    pub build_id: String,
    /// Receives the turns and activities that the store has committed, for traces. `None`: no traces.
    pub observer: Option<Arc<dyn Observe>>,
    /// Deletes ended instances, records of the audit and dead letters after an age. `None`: this runtime deletes nothing by itself.
    pub retention: Option<Retention>,
    /// The interval at which this node stores a report about itself: its handlers, tags, running work and leases, for `outlast node
    /// list`, the dashboard and the diagnosis of instances. One commit per interval; a failed one fails no work. `None`: no reports.
    /// The id of the node in its reports is `worker_node_id`, or random; nodes with the same name share one report.
    pub node_heartbeat: Option<Duration>,
    /// The clock of the runtime.
    pub clock: Arc<dyn Clock>,
    /// The source of random bits of the runtime.
    pub entropy: Arc<dyn Entropy>,
    /// The stamp of new executions, with which tests play a node of a later version of the contract.
    #[cfg(feature = "replay-version-test")]
    #[doc(hidden)]
    pub stamp: Option<String>,
    /// Controls when the tasks of this runtime are polled, for tests.
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
            on_misfit: OnMisfit::Fail,
            build_id: String::new(),
            observer: None,
            retention: None,
            node_heartbeat: Some(Duration::from_secs(5)),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(OsEntropy),
            #[cfg(feature = "replay-version-test")]
            stamp: None,
            #[cfg(feature = "test-hooks")]
            pulse: None,
        }
    }
}
