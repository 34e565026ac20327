//! The validation suite as the author of a provider uses it: a factory, and one test per validation. Validations that need a
//! management interface or hooks that damage stored data are omitted, because a first provider does not have these.

use super::MyProvider;
use async_trait::async_trait;
use duroxide::provider_validations::{ProviderFactory, TokioClock, long_polling};
use duroxide::providers::{Clock, Provider};
use std::sync::Arc;

pub(super) struct MyFactory;

#[async_trait]
impl ProviderFactory for MyFactory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        // Leases expire in paused time, so that no validation waits in real time.
        let clock = TokioClock::start();
        Arc::new(MyProvider::with_clock(move || clock.now_ms()))
    }
}

/// One test per validation of a module of the suite.
macro_rules! validate {
    ($module:ident = $suite:path: $($name:ident),+ $(,)?) => {
        mod $module {
            use super::MyFactory;
            use $suite as suite;
            $(#[tokio::test(start_paused = true)]
            async fn $name() {
                suite::$name(&MyFactory).await;
            })+
        }
    };
}

validate! { flat = duroxide::provider_validations:
    test_multi_operation_atomic_ack, test_lock_released_only_on_successful_ack,
    test_concurrent_ack_prevention, test_invalid_lock_token_on_ack, test_duplicate_event_id_rejection,
    test_exclusive_instance_lock, test_lock_token_uniqueness, test_invalid_lock_token_rejection,
    test_concurrent_instance_fetching, test_cross_instance_lock_isolation, test_message_tagging_during_lock,
    test_ack_only_affects_locked_messages, test_multi_threaded_lock_contention,
    test_lock_expires_after_timeout, test_abandon_releases_lock_immediately, test_worker_lock_renewal_success,
    test_worker_lock_renewal_extends_timeout, test_abandon_work_item_with_delay,
    test_worker_ack_fails_after_lock_expiry, test_execution_isolation, test_worker_queue_fifo_ordering,
    test_worker_peek_lock_semantics, test_worker_ack_atomicity, test_lost_lock_token_handling,
    test_get_instance_stats_kv_merged, test_cancelled_activities_deleted_from_worker_queue,
    test_same_activity_in_worker_items_and_cancelled_is_noop,
}

validate! { poison_message = duroxide::provider_validations::poison_message:
    orchestration_attempt_count_starts_at_one, worker_attempt_count_starts_at_one,
    orchestration_attempt_count_increments_on_refetch, worker_attempt_count_increments_on_lock_expiry,
    attempt_count_is_per_message, ignore_attempt_never_goes_negative, max_attempt_count_across_message_batch,
}

validate! { sessions = duroxide::provider_validations::sessions:
    test_none_session_skips_session_items, test_session_affinity_blocks_other_worker,
    test_session_takeover_after_lock_expiry, test_renew_session_lock_active, test_cleanup_removes_expired_no_items,
}

validate! { tag_filtering = duroxide::provider_validations::tag_filtering:
    test_multi_tag_filter, test_none_filter_returns_nothing,
}

validate! { capability_filtering = duroxide::provider_validations::capability_filtering:
    test_fetch_filter_skips_incompatible_selects_compatible, test_filter_with_empty_supported_versions_returns_nothing,
}

validate! { custom_status = duroxide::provider_validations::custom_status: test_custom_status_version_increments }

validate! { kv_store = duroxide::provider_validations::kv_store:
    test_kv_delta_tombstone_overrides_store, test_kv_delta_snapshot_excludes_current_execution,
}

/// The long-poll checks take a provider instead of a factory.
#[tokio::test(start_paused = true)]
async fn test_short_poll_returns_immediately() {
    let provider = MyFactory.create_provider().await;
    long_polling::test_short_poll_returns_immediately(&*provider, MyFactory.short_poll_threshold()).await;
}
