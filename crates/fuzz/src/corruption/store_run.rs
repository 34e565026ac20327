//! A runtime on a store file, in virtual time.

use super::program;
use outlast_conformance::TokioClock;
use outlast_model::ErrorDetails;
use outlast_provider::{Clock, Entropy};
use outlast_runtime::observability::ObservabilityConfig;
use outlast_runtime::{Client, OrchestrationStatus, Runtime, RuntimeOptions};
use outlast_sqlite::{SqliteError, SqliteOptions, SqliteProvider, Synchronous};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The time at which a store is created.
const EPOCH_MS: u64 = 1_700_000_000_000;

pub(super) const MAIN: &str = "main";
pub(super) const SECOND: &str = "other";

/// The final state of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FinalState {
    Completed(String),
    Failed(ErrorDetails),
    /// The instance exists and has not ended.
    NotEnded,
    Missing,
    /// The store returned an error.
    Refused(String),
}

impl FinalState {
    fn of(status: Result<OrchestrationStatus, impl ToString>) -> Self {
        match status {
            Ok(OrchestrationStatus::Completed { output, .. }) => Self::Completed(output),
            Ok(OrchestrationStatus::Failed { details, .. }) => Self::Failed(details),
            Ok(OrchestrationStatus::Running { .. }) => Self::NotEnded,
            Ok(OrchestrationStatus::NotFound) => Self::Missing,
            Err(error) => Self::Refused(error.to_string()),
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self, Self::Completed(_) | Self::Failed(_))
    }
}

/// Numbers that are equal in every run.
struct CountingEntropy(AtomicU64);

impl Entropy for CountingEntropy {
    fn next_u128(&self) -> u128 {
        // The multiplier is odd, so that no two numbers are equal, and spreads them over all bits.
        u128::from(self.0.fetch_add(1, Relaxed) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)
    }
}

pub(super) struct StoreRun {
    clock: Arc<TokioClock>,
    store: Arc<SqliteProvider>,
    pub(super) client: Client,
}

impl StoreRun {
    /// Opens a store this long after its creation. `life` makes tokens differ from those of an earlier open.
    pub(super) async fn open(url: &str, at_ms: u64, life: u64) -> Result<Self, SqliteError> {
        let clock = Arc::new(TokioClock::start_at(EPOCH_MS + at_ms));
        let options = SqliteOptions {
            inline: true,
            synchronous: Synchronous::Normal,
            foreign_poll_interval: Duration::from_secs(60),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            entropy: Arc::new(CountingEntropy(AtomicU64::new(life << 32))),
            ..SqliteOptions::default()
        };
        let store = Arc::new(SqliteProvider::new(url, Some(options)).await?);
        Ok(Self { clock, client: Client::new(Arc::clone(&store) as Arc<_>), store })
    }

    pub(super) async fn start_runtime(&self, life: u64) -> Arc<Runtime> {
        let lease = Duration::from_secs(2);
        let options = RuntimeOptions {
            orchestrator_lock_timeout: lease,
            orchestrator_lock_renewal_buffer: lease / 2,
            worker_lock_timeout: lease,
            worker_lock_renewal_buffer: lease / 2,
            session_lock_timeout: lease,
            session_lock_renewal_buffer: lease / 2,
            session_idle_timeout: lease * 2,
            max_attempts: 3,
            observability: ObservabilityConfig::default(),
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            entropy: Arc::new(CountingEntropy(AtomicU64::new((life + 100) << 32))),
            ..RuntimeOptions::default()
        };
        let store = Arc::clone(&self.store) as Arc<_>;
        Runtime::start_with_options(store, program::activities(), program::orchestrations(), options).await
    }

    /// Waits until both instances have ended, at most for `timeout`.
    pub(super) async fn finish(&self, timeout: Duration) -> [FinalState; 2] {
        let ended = async |instance: &str| {
            let status = self.client.wait_for_orchestration(instance, timeout).await;
            match status {
                Ok(status) => FinalState::of(Ok::<_, String>(status)),
                Err(_) => FinalState::of(self.client.get_orchestration_status(instance).await),
            }
        };
        let (main, other) = tokio::join!(ended(MAIN), ended(SECOND));
        [main, other]
    }
}
