//! The list of all validations. A new validation is added here.

use crate::factory::Borrowed;
use crate::report::{Needs, Validation};
use crate::{ProviderFactory, long_polling};
use futures::future::BoxFuture;

/// Passes the list `category: [validation, ..]` to another macro, after one token tree of the caller.
#[doc(hidden)]
#[macro_export]
macro_rules! __each_validation {
    ([$($then:tt)+] $argument:tt) => {
        $crate::__with_runtime_validations! { [$($then)+] $argument
            instance_creation: [test_instance_creation_via_metadata, test_no_instance_creation_on_enqueue, test_null_version_handling, test_sub_orchestration_instance_creation],
            atomicity: [test_atomicity_failure_rollback, test_multi_operation_atomic_ack, test_lock_released_only_on_successful_ack, test_concurrent_ack_prevention],
            error_handling: [test_invalid_lock_token_on_ack, test_duplicate_event_id_rejection, test_missing_instance_metadata, test_corrupted_serialization_data, test_lock_expiration_during_ack, test_read_corrupted_history_returns_error, test_read_with_execution_corrupted_history_returns_error],
            instance_locking: [test_exclusive_instance_lock, test_lock_token_uniqueness, test_invalid_lock_token_rejection, test_concurrent_instance_fetching, test_completions_arriving_during_lock_blocked, test_cross_instance_lock_isolation, test_message_tagging_during_lock, test_ack_only_affects_locked_messages, test_multi_threaded_lock_contention, test_multi_threaded_no_duplicate_processing, test_multi_threaded_lock_expiration_recovery],
            lock_expiration: [test_lock_expires_after_timeout, test_abandon_releases_lock_immediately, test_lock_renewal_on_ack, test_concurrent_lock_attempts_respect_expiration, test_worker_lock_renewal_success, test_worker_lock_renewal_invalid_token, test_worker_lock_renewal_after_expiration, test_worker_lock_renewal_extends_timeout, test_worker_lock_renewal_after_ack, test_abandon_work_item_releases_lock, test_abandon_work_item_with_delay, test_worker_ack_fails_after_lock_expiry, test_orchestration_lock_renewal_after_expiration],
            multi_execution: [test_execution_isolation, test_latest_execution_detection, test_execution_id_sequencing, test_continue_as_new_creates_new_execution, test_execution_history_persistence],
            queue_semantics: [test_worker_queue_fifo_ordering, test_worker_peek_lock_semantics, test_worker_ack_atomicity, test_timer_delayed_visibility, test_lost_lock_token_handling, test_worker_item_immediate_visibility, test_worker_delayed_visibility_skips_future_items, test_orphan_queue_messages_dropped],
            management: [test_list_instances, test_list_instances_by_status, test_list_executions, test_get_instance_info, test_get_execution_info, test_get_system_metrics, test_get_queue_depths, test_get_instance_stats_nonexistent, test_get_instance_stats_history, test_get_instance_stats_kv, test_get_instance_stats_carry_forward, test_get_instance_stats_kv_delta_only, test_get_instance_stats_kv_merged],
            long_polling: [test_short_poll_returns_immediately, test_short_poll_work_item_returns_immediately, test_fetch_respects_timeout_upper_bound, test_long_poll_waits_for_timeout, test_long_poll_work_item_waits_for_timeout],
            poison_message: [orchestration_attempt_count_starts_at_one, worker_attempt_count_starts_at_one, orchestration_attempt_count_increments_on_refetch, worker_attempt_count_increments_on_lock_expiry, attempt_count_is_per_message, abandon_work_item_ignore_attempt_decrements, abandon_orchestration_item_ignore_attempt_decrements, ignore_attempt_never_goes_negative, max_attempt_count_across_message_batch, orchestration_ignore_attempt_preserves_hidden_start, orchestration_delayed_abandon_preserves_unlocked_rows],
            cancellation: [test_fetch_returns_running_state_for_active_orchestration, test_fetch_returns_terminal_state_when_orchestration_completed, test_fetch_returns_terminal_state_when_orchestration_failed, test_fetch_returns_terminal_state_when_orchestration_continued_as_new, test_fetch_returns_missing_state_when_instance_deleted, test_renew_returns_running_when_orchestration_active, test_renew_returns_terminal_when_orchestration_completed, test_renew_returns_missing_when_instance_deleted, test_ack_work_item_none_deletes_without_enqueue, test_cancelled_activities_deleted_from_worker_queue, test_ack_work_item_fails_when_entry_deleted, test_renew_fails_when_entry_deleted, test_cancelling_nonexistent_activities_is_idempotent, test_batch_cancellation_deletes_multiple_activities, test_same_activity_in_worker_items_and_cancelled_is_noop, test_orphan_activity_after_instance_force_deletion],
            deletion: [test_delete_terminal_instances, test_delete_running_rejected_force_succeeds, test_delete_nonexistent_instance, test_delete_cleans_queues_and_locks, test_cascade_delete_hierarchy, test_force_delete_prevents_ack_recreation, test_list_children, test_delete_get_parent_id, test_delete_get_instance_tree, test_delete_instances_atomic, test_delete_instances_atomic_force, test_delete_instances_atomic_orphan_detection, test_stale_activity_after_delete_recreate],
            prune: [test_prune_options_combinations, test_prune_safety, test_prune_bulk, test_prune_bulk_includes_running_instances],
            bulk_deletion: [test_delete_instance_bulk_filter_combinations, test_delete_instance_bulk_safety_and_limits, test_delete_instance_bulk_completed_before_filter, test_delete_instance_bulk_cascades_to_children],
            capability_filtering: [test_fetch_with_filter_none_returns_any_item, test_fetch_with_compatible_filter_returns_item, test_fetch_with_incompatible_filter_skips_item, test_fetch_filter_skips_incompatible_selects_compatible, test_fetch_filter_does_not_lock_skipped_instances, test_fetch_filter_null_pinned_version_always_compatible, test_fetch_filter_boundary_versions, test_pinned_version_stored_via_ack_metadata, test_pinned_version_immutable_across_ack_cycles, test_continue_as_new_execution_gets_own_pinned_version, test_filter_with_empty_supported_versions_returns_nothing, test_concurrent_filtered_fetch_no_double_lock, test_ack_stores_pinned_version_via_metadata_update, test_provider_updates_pinned_version_when_told, test_fetch_corrupted_history_filtered_vs_unfiltered, test_fetch_deserialization_error_increments_attempt_count, test_fetch_deserialization_error_eventually_reaches_poison, test_fetch_filter_applied_before_history_deserialization, test_fetch_single_range_only_uses_first_range, test_ack_appends_event_to_corrupted_history],
            sessions: [test_non_session_items_fetchable_by_any_worker, test_non_session_items_returned_with_session_config, test_session_item_claimable_when_no_session, test_session_affinity_same_worker, test_session_affinity_blocks_other_worker, test_different_sessions_different_workers, test_mixed_session_and_non_session_items, test_session_claimable_after_lock_expiry, test_session_takeover_after_lock_expiry, test_none_session_skips_session_items, test_some_session_returns_all_items, test_renew_session_lock_active, test_renew_session_lock_skips_idle, test_renew_session_lock_no_sessions, test_renew_session_lock_after_expiry_returns_zero, test_session_lock_renewal_extends_past_original_timeout, test_cleanup_removes_expired_no_items, test_cleanup_keeps_sessions_with_pending_items, test_cleanup_keeps_active_sessions, test_cleanup_then_new_item_recreates_session, test_ack_updates_session_last_activity, test_renew_work_item_updates_session_last_activity, test_session_items_processed_in_order, test_shared_worker_id_any_caller_can_fetch_owned_session, test_concurrent_session_claim_only_one_wins, test_original_worker_reclaims_expired_session, test_session_lock_expires_same_worker_reacquires, test_abandoned_session_item_retryable, test_abandoned_session_item_ignore_attempt, test_activity_lock_expires_session_lock_valid_same_worker_refetches, test_session_lock_expires_new_owner_gets_redelivery, test_both_locks_expire_different_worker_claims, test_session_lock_expires_activity_lock_valid_ack_succeeds],
            tag_filtering: [test_default_only_fetches_untagged, test_tags_fetches_only_matching, test_default_and_fetches_untagged_and_matching, test_none_filter_returns_nothing, test_any_filter_fetches_everything, test_multi_tag_filter, test_tag_round_trip_preservation, test_tag_survives_abandon_and_refetch, test_tag_preserved_through_ack_orchestration_item, test_multi_runtime_tag_isolation],
            custom_status: [test_custom_status_set, test_custom_status_clear, test_custom_status_none_preserves, test_custom_status_version_increments, test_custom_status_polling_no_change, test_custom_status_nonexistent_instance, test_custom_status_default_on_new_instance],
            kv_store: [test_kv_set_and_get, test_kv_overwrite, test_kv_clear_single, test_kv_clear_all, test_kv_get_nonexistent, test_kv_get_unknown_instance, test_kv_clear_nonexistent_key, test_kv_set_after_clear, test_kv_empty_value, test_kv_large_value, test_kv_special_chars_in_key, test_kv_snapshot_empty, test_kv_snapshot_in_fetch, test_kv_snapshot_after_clear_single, test_kv_snapshot_after_clear_all, test_kv_snapshot_cross_execution, test_kv_cross_execution_overwrite, test_kv_cross_execution_remove_readd, test_kv_execution_id_tracking, test_kv_prune_preserves_overwritten, test_kv_prune_preserves_all_keys, test_kv_prune_current_execution_protected, test_kv_delta_prune_untouched_key_survives, test_kv_instance_isolation, test_kv_clear_isolation, test_kv_delete_instance_cascades, test_kv_delete_instance_with_children, test_kv_delta_delete_instance_cascades, test_kv_delta_snapshot_excludes_current_execution, test_kv_delta_snapshot_includes_completed_execution, test_kv_delta_client_reads_merged, test_kv_delta_tombstone_overrides_store, test_kv_delta_clear_all_tombstones_store, test_kv_delta_merged_on_completion, test_kv_delta_merged_on_can],
            orphans: [an_orphan_does_not_block_others, orphans_are_delivered_once_their_instance_starts, a_put_off_orphan_has_no_counted_delivery, queue_messages_beside_a_control_message_are_kept, a_younger_queue_message_is_kept_as_long_as_its_control_message, queue_messages_alone_are_dropped, messages_wait_for_a_delayed_start, orphans_of_two_instances_do_not_starve_a_third, an_orphan_leaves_no_lease],
            families: [a_start_keeps_its_waiting_parent, an_ended_instance_is_still_fetched],
            dead_letters: [a_damaged_message_is_a_dead_letter_and_others_are_delivered, a_dead_letter_has_its_delivery_count, a_batch_of_damaged_messages_blocks_no_other_instance, a_damaged_activity_is_a_dead_letter_and_the_next_is_delivered, a_batch_fetch_skips_damaged_activities, queue_messages_of_a_damaged_history_are_kept],
            message_order: [timers_are_delivered_in_the_order_of_their_fire_times, a_timer_in_the_past_overtakes_no_message, a_delayed_abandon_keeps_the_order_of_the_batch, a_delayed_abandon_lets_other_instances_go_first, an_abandon_without_delay_keeps_the_place_in_the_queue, an_expired_lease_keeps_the_place_in_the_queue, a_delayed_message_is_delivered_after_its_delay, many_messages_keep_their_order],
            message_bound: [a_fetch_takes_no_more_messages_than_its_bound, a_fetch_takes_no_more_bytes_than_its_bound, a_start_is_in_the_first_turn_before_older_messages, a_successor_starts_before_messages_beyond_the_bound, a_delay_holds_messages_beyond_the_bound, a_takeover_frees_messages_beyond_the_bound, orphans_beyond_the_bound_are_kept_for_their_instance, an_outcome_does_not_overtake_messages_beyond_the_bound],
            fencing: [a_commit_after_takeover_writes_nothing, a_commit_after_expiry_writes_nothing, one_lease_commits_once, a_commit_changes_only_the_instance_of_its_lease, a_refused_commit_changes_nothing, a_refused_completion_changes_nothing, a_partial_commit_is_never_visible, a_used_token_is_refused, a_lost_token_cannot_disturb_the_new_holder, a_late_completion_writes_nothing, one_lease_completes_once, a_token_is_valid_for_its_own_queue_only],
            leases: [a_lease_starts_when_the_item_is_claimed, a_session_lease_starts_when_the_session_is_claimed, a_renewal_never_revives_a_lease, a_renewal_never_shortens_a_lease, a_renewal_counts_milliseconds, a_renewed_lease_covers_the_fetched_messages, a_takeover_covers_the_messages_of_the_old_lease, the_longest_duration_is_accepted, an_abandon_changes_only_the_fetched_messages, an_expired_lease_can_still_be_given_back, a_delay_is_not_a_lease],
            dropped_fetch: [a_dropped_wait_takes_no_later_item, an_item_for_a_dropped_fetch_is_not_lost, a_fetch_dropped_before_its_return_takes_no_item, many_dropped_fetches_leave_no_lease, many_dropped_waits_take_no_item],
            waiting: [an_enqueue_ends_the_wait, a_start_ends_the_wait, a_commit_ends_the_wait, an_abandon_ends_the_wait, a_timer_ends_the_wait_when_it_is_due, the_end_of_a_delay_ends_the_wait, the_end_of_a_lease_ends_the_wait, the_end_of_a_session_ends_the_wait, a_fetch_without_timeout_returns_at_once, one_item_ends_one_wait, two_items_end_two_waits, only_a_wait_that_can_use_the_item_ends, an_orphan_does_not_end_the_wait, the_end_of_a_later_session_ends_the_wait, an_orphan_whose_instance_starts_ends_the_wait],
            warm_fetch: [a_warm_fetch_delivers_the_same_turn, a_warm_fetch_counts_and_filters_like_any_other, the_last_event_id_is_the_position_of_the_execution, a_new_instance_loads_an_empty_history, a_damaged_history_is_reported_when_it_is_loaded],
            run_ahead: [an_outcome_is_stored_with_its_turn_or_queued, an_instance_continues_after_a_run_ahead_turn, a_run_ahead_turn_can_end_the_instance, a_lost_activity_stores_no_turn, an_instance_at_a_later_position_gets_the_outcome_only, a_successor_gets_no_turn_of_its_predecessor, an_instance_under_lease_gets_the_outcome_only, an_outcome_does_not_overtake_older_messages, other_and_delayed_messages_do_not_prevent_a_run_ahead_turn, a_turn_of_another_time_is_not_stored, a_malformed_turn_refuses_its_outcome_too],
            fused_outcomes: [outcomes_are_stored_with_their_turn_or_not_at_all, outcomes_are_committed_once, a_turn_of_several_outcomes_can_end_the_instance, a_lost_lease_stores_no_turn_of_the_others, an_expired_lease_stores_no_turn_of_the_others, one_lease_is_not_two, outcomes_do_not_overtake_older_messages, a_turn_that_does_not_follow_is_not_stored, malformed_outcomes_change_nothing],
            eager_start: [a_start_is_stored_with_its_first_turn_or_not_at_all, an_instance_continues_after_an_eager_start, an_eager_start_can_end_the_instance, the_turn_of_an_instance_that_exists_is_not_stored, a_first_turn_overtakes_no_message, a_second_eager_start_is_refused, a_first_turn_of_another_time_is_not_stored, a_turn_after_an_event_is_no_first_turn, a_malformed_eager_start_changes_nothing],
            batch_fetch: [a_batch_is_in_order_and_bounded, a_batch_of_zero_takes_no_activity, the_leases_of_a_batch_are_independent, a_batch_honours_tags, a_batch_honours_sessions, parallel_batches_do_not_overlap, a_batch_waits_for_its_first_activity_only, the_orchestration_of_an_activity_is_right_if_given],
            noted_failures: [a_noted_failure_is_counted_and_kept, a_noted_failure_is_no_silent_delivery, a_noted_activity_returns_after_its_delay, a_failure_is_noted_under_the_lease_only, a_noted_activity_completes_as_any_other],
            keyed: [a_message_with_a_key_is_delivered_once, concurrent_messages_with_one_key_are_stored_once, a_key_belongs_to_one_instance, keys_are_deleted_with_their_instance, a_full_mailbox_keeps_no_key, ended_and_starting_instances_answer_keys, keys_are_compared_exactly],
            holds: [a_held_instance_gets_no_turn, messages_for_a_held_instance_wait_in_order, a_hold_waits_for_a_running_turn, a_turn_is_given_back_uncounted_for_a_hold, a_new_instance_is_held_with_its_start, an_expired_lease_ends_with_a_hold, a_cancellation_releases_a_held_instance, no_turn_runs_ahead_of_a_hold, a_deleted_instance_is_not_held, held_messages_are_counted_apart, the_oldest_due_item_may_be_fetched, instances_are_held_once_and_listed, orchestrations_are_paused_once_and_listed, a_resumption_ends_one_pause, the_audit_keeps_its_records],
            requeues: [dead_letters_are_paged_by_number, a_requeued_message_is_delivered_as_new, a_requeued_activity_is_delivered_as_new, an_undeliverable_dead_letter_stays, a_dropped_dead_letter_is_gone, a_requeue_ends_the_wait],
            resets: [a_reset_begins_the_next_execution, a_reset_puts_keys_and_status_back, a_reset_repeats_the_removal_of_keys, a_reset_fits_the_newest_events, an_expired_lease_ends_with_a_reset, messages_of_a_reset_are_delivered_first, messages_of_a_second_reset_are_delivered_first, a_reset_instance_stays_held, an_ended_instance_is_reset, a_fork_is_a_new_instance, a_reset_is_in_the_audit],
            transfers: [an_export_has_everything_of_an_instance, an_import_is_exported_unchanged, an_imported_instance_goes_on, an_import_refuses_a_taken_id, an_import_refuses_contradictions, an_imported_instance_stays_held, an_imported_instance_takes_no_message_twice, an_import_is_fetched_and_audited, a_large_instance_is_imported_whole, ids_without_an_instance_are_listed],
            retention: [the_oldest_instances_are_listed_first, only_old_roots_are_deleted, a_running_descendant_keeps_its_tree, undelivered_items_keep_their_tree, a_held_instance_is_not_deleted_by_age, concurrent_deletions_by_age_count_each_tree_once, old_records_of_the_audit_are_pruned, old_dead_letters_are_pruned],
            nodes: [a_report_is_listed_as_announced, a_report_replaces_the_earlier_one, a_lost_node_is_listed, nodes_are_paged_by_id, a_removed_node_is_gone, old_reports_are_swept_in_batches, reports_out_of_bounds_are_refused],
            outcome: [an_unknown_instance_has_no_outcome, a_running_instance_has_the_status_running, a_completed_instance_has_its_output, a_failed_instance_has_its_failure, the_newest_execution_counts, the_custom_status_belongs_to_the_outcome, a_damaged_history_makes_the_outcome_an_error_or_leaves_it_right],
            start_policy: [a_free_id_is_started, fail_if_exists_changes_nothing, use_existing_delivers_the_messages, started_answers_equal_queued_starts, concurrent_starts_create_one_instance, a_delayed_start_is_hidden, a_bad_request_changes_nothing, a_deleted_id_is_free_again],
            listing: [pages_list_every_instance_once, instances_of_the_same_millisecond_are_all_listed, every_condition_selects, the_page_size_has_bounds, an_empty_store_has_one_empty_page, changes_between_pages_hide_and_repeat_no_instance, pages_of_a_history_have_every_event_once],
            pending: [pending_messages_are_shown_in_order, pending_shows_the_lease_of_a_turn, pending_activities_are_shown_with_their_leases, pending_activities_are_shown_with_their_failures, pending_work_is_bounded_and_of_one_instance, pages_of_a_queue_have_every_item_once, pages_of_a_queue_show_leases_and_delays, tags_count_due_delayed_and_leased_activities],
            bad_input: [bad_instance_ids_are_refused, a_completion_for_a_bad_instance_id_is_refused, generated_ids_may_be_longer, unusual_instance_ids_are_kept_apart, each_queue_refuses_items_of_the_other, bad_event_ids_are_refused, texts_are_read_back_exactly, the_largest_numbers_are_read_back_unchanged],
            traps: [an_instance_keeps_its_name_and_version, only_name_and_version_create_an_instance, tokens_cannot_be_guessed, every_enqueue_keeps_tag_and_session, a_large_turn_is_one_commit, successive_turns_send_to_one_instance, each_execution_keeps_its_own_state, an_execution_that_runs_again_has_not_ended, pruning_by_time_finds_continued_executions, versions_are_compared_number_by_number, events_keep_their_stamps, a_running_descendant_keeps_its_root, a_child_may_be_committed_before_its_parent, a_given_back_item_counts_as_waiting, an_append_creates_no_instance],
        }
    };
}

/// Adds the validations that need a runtime. There are two versions of this macro because a `cfg` inside of a macro tests the
/// features of the crate that uses it.
#[cfg(feature = "runtime")]
#[doc(hidden)]
#[macro_export]
macro_rules! __with_runtime_validations {
    ([$($then:tt)+] $argument:tt $($categories:tt)*) => {
        $($then)+! { $argument
            $($categories)*
            race_replay: [test_duplicate_start_preserves_pinned_handler, test_continue_as_new_unregistered_backoff, test_continue_as_new_poisoned_successor_is_own_execution, test_continue_as_new_duplicate_start, test_continue_as_new_transition_delivery, test_queue_race_cancellation_replay, test_continue_as_new_queue_race_replay, test_queue_replay_version_stamp_roundtrip, test_positional_wait_race_replay, test_legacy_queue_race_decision_preserved],
        }
    };
}

/// Without the feature `runtime` there are none to add.
#[cfg(not(feature = "runtime"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __with_runtime_validations {
    ([$($then:tt)+] $argument:tt $($categories:tt)*) => {
        $($then)+! { $argument $($categories)* }
    };
}

/// Turns a factory into one test per validation, in a module per category.
///
/// `real:` runs on the machine's time; `paused:` on tokio's paused time, for stores whose clock follows it. The calling
/// crate needs `tokio` with `macros` and `rt` (and `test-util` for `paused:`). The expression is evaluated once per
/// test, in a module inside the calling one.
#[macro_export]
macro_rules! provider_validation_tests {
    (real: $factory:expr) => {
        $crate::__each_validation! { [$crate::__validation_tests] (real $factory) }
    };
    (paused: $factory:expr) => {
        $crate::__each_validation! { [$crate::__validation_tests] (paused $factory) }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __validation_tests {
    ($mode:tt $($category:ident: [$($name:ident),* $(,)?],)*) => {
        $(mod $category {
            #[allow(unused_imports)]
            use super::*;
            $($crate::__validation_test! { $mode $category $name })*
        })*
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __validation_test {
    ((real $factory:expr) $category:ident $name:ident) => {
        #[tokio::test]
        async fn $name() {
            $crate::check_validation(stringify!($category), stringify!($name), &$factory).await;
        }
    };
    ((paused $factory:expr) $category:ident $name:ident) => {
        #[tokio::test(start_paused = true)]
        async fn $name() {
            $crate::check_validation(stringify!($category), stringify!($name), &$factory).await;
        }
    };
}

macro_rules! as_values {
    (() $($category:ident: [$($name:ident),* $(,)?],)*) => {
        vec![$($({
            fn run(factory: &dyn ProviderFactory) -> BoxFuture<'_, ()> {
                Box::pin(async move { callable::$category::$name(&Borrowed(factory)).await })
            }
            let (category, name) = (stringify!($category), stringify!($name));
            Validation { category, name, needs: needs(category, name), run }
        },)*)*]
    };
}

/// All validations, category by category.
pub fn validations() -> Vec<Validation> {
    __each_validation! { [as_values] () }
}

/// Checks one validation by name; panics if the store breaks its rule.
pub async fn check_validation(category: &str, name: &str, factory: &dyn ProviderFactory) {
    let validation = validations().into_iter().find(|v| v.category == category && v.name == name);
    validation.unwrap_or_else(|| panic!("no validation {category}::{name}")).check(factory).await;
}

fn needs(category: &str, name: &str) -> Needs {
    match (category, name) {
        (
            "long_polling",
            "test_long_poll_waits_for_timeout" | "test_long_poll_work_item_waits_for_timeout",
        ) => Needs::Waits,
        ("leases", "a_lease_starts_when_the_item_is_claimed") => Needs::Waits,
        ("leases", "a_session_lease_starts_when_the_session_is_claimed") => Needs::Waits,
        ("dropped_fetch", "an_item_for_a_dropped_fetch_is_not_lost") => Needs::Waits,
        ("dropped_fetch", "many_dropped_waits_take_no_item") => Needs::Waits,
        ("waiting", _) => Needs::Waits,
        ("requeues", "a_requeue_ends_the_wait") => Needs::Waits,
        ("dead_letters", _) => Needs::QueueHooks,
        ("pending", _) => Needs::Pending,
        _ => Needs::Nothing,
    }
}

/// All categories, callable with a factory.
mod callable {
    pub(super) use crate::{
        atomicity, bad_input, batch_fetch, bulk_deletion, cancellation, capability_filtering, custom_status,
        dead_letters, deletion, dropped_fetch, eager_start, error_handling, families, fencing,
        fused_outcomes, holds, instance_creation, instance_locking, keyed, kv_store, leases, listing,
        lock_expiration, management, message_bound, message_order, multi_execution, nodes, noted_failures,
        orphans, outcome, pending, poison_message, prune, queue_semantics, requeues, resets, retention,
        run_ahead, sessions, start_policy, tag_filtering, transfers, traps, waiting, warm_fetch,
    };

    /// One of these takes a stamp as well: it is checked with both that change the rules.
    #[cfg(feature = "runtime")]
    pub(super) mod race_replay {
        use super::super::Borrowed;
        use crate::race_replay;
        pub(in super::super) use race_replay::{
            test_continue_as_new_duplicate_start, test_continue_as_new_poisoned_successor_is_own_execution,
            test_continue_as_new_queue_race_replay, test_continue_as_new_unregistered_backoff,
            test_duplicate_start_preserves_pinned_handler, test_legacy_queue_race_decision_preserved,
            test_positional_wait_race_replay, test_queue_race_cancellation_replay,
            test_queue_replay_version_stamp_roundtrip,
        };

        pub(in super::super) async fn test_continue_as_new_transition_delivery(factory: &Borrowed<'_>) {
            for stamp in ["0.1.30", "0.1.31"] {
                race_replay::test_continue_as_new_transition_delivery(factory, stamp).await;
            }
        }
    }

    /// These take a store instead of a factory.
    pub(super) mod long_polling {
        use super::super::{Borrowed, ProviderFactory, long_polling};

        pub(in super::super) async fn test_short_poll_returns_immediately(factory: &Borrowed<'_>) {
            let provider = factory.create_provider().await;
            long_polling::test_short_poll_returns_immediately(&*provider, factory.short_poll_threshold())
                .await;
        }
        pub(in super::super) async fn test_short_poll_work_item_returns_immediately(factory: &Borrowed<'_>) {
            let provider = factory.create_provider().await;
            long_polling::test_short_poll_work_item_returns_immediately(
                &*provider,
                factory.short_poll_threshold(),
            )
            .await;
        }
        pub(in super::super) async fn test_fetch_respects_timeout_upper_bound(factory: &Borrowed<'_>) {
            long_polling::test_fetch_respects_timeout_upper_bound(&*factory.create_provider().await).await;
        }
        pub(in super::super) async fn test_long_poll_waits_for_timeout(factory: &Borrowed<'_>) {
            long_polling::test_long_poll_waits_for_timeout(&*factory.create_provider().await).await;
        }
        pub(in super::super) async fn test_long_poll_work_item_waits_for_timeout(factory: &Borrowed<'_>) {
            long_polling::test_long_poll_work_item_waits_for_timeout(&*factory.create_provider().await).await;
        }
    }
}
