//! The results of the first provider in the whole suite, for every validation.

use super::validations::MyFactory;
use duroxide::provider_validations::{Validation, ValidationOutcome, ValidationResult, run_all_validations};

/// The failure messages of rules that need an interface or hook that the provider or its factory lacks.
const NO_MANAGEMENT: &str = "management interface";
const NO_HOOK: &str = "does not implement corrupt_";
const REFUSED: &str = "must be refused";
const ALL: &[&str] = &[];

/// The validations that fail, by category, and their failure messages.
const FAILS: [(&str, &[&str], &str); 25] = [
    ("management", MANAGEMENT, NO_MANAGEMENT),
    ("deletion", ALL, NO_MANAGEMENT),
    ("prune", ALL, NO_MANAGEMENT),
    ("bulk_deletion", ALL, NO_MANAGEMENT),
    ("cancellation", &["test_orphan_activity_after_instance_force_deletion"], NO_MANAGEMENT),
    ("kv_store", KV_DELETION_AND_PRUNING, NO_MANAGEMENT),
    ("holds", HOLDS_BY_OPERATORS, NO_MANAGEMENT),
    ("nodes", ALL, NO_MANAGEMENT),
    ("requeues", REQUEUES, NO_MANAGEMENT),
    ("resets", ALL, NO_MANAGEMENT),
    ("retention", RETENTION, NO_MANAGEMENT),
    ("transfers", TRANSFERS, NO_MANAGEMENT),
    ("listing", ALL, NO_MANAGEMENT),
    ("start_policy", &["a_deleted_id_is_free_again"], NO_MANAGEMENT),
    ("traps", TIMES_TREES_AND_DEPTHS, NO_MANAGEMENT),
    (
        "error_handling",
        &[
            "test_read_corrupted_history_returns_error",
            "test_read_with_execution_corrupted_history_returns_error",
        ],
        NO_HOOK,
    ),
    ("capability_filtering", CORRUPTED_HISTORIES, NO_HOOK),
    ("warm_fetch", &["a_damaged_history_is_reported_when_it_is_loaded"], NO_HOOK),
    ("outcome", &["a_damaged_history_makes_the_outcome_an_error_or_leaves_it_right"], NO_HOOK),
    // Rules that duroxide does not have: messages wait for a start that is delayed, a timer takes its place in line when it fires, ids have limits, an activity
    // is the only item that a turn can send to workers, and a token is random.
    ("orphans", &["messages_wait_for_a_delayed_start"], "with the start"),
    ("message_order", &["timers_are_delivered_in_the_order_of_their_fire_times"], "by commit"),
    (
        "bad_input",
        &[
            "bad_instance_ids_are_refused",
            "a_completion_for_a_bad_instance_id_is_refused",
            "generated_ids_may_be_longer",
        ],
        REFUSED,
    ),
    ("fencing", &["a_refused_commit_changes_nothing"], REFUSED),
    ("start_policy", &["a_bad_request_changes_nothing"], REFUSED),
    ("traps", &["tokens_cannot_be_guessed"], "differ in"),
];

const MANAGEMENT: &[&str] = &[
    "test_list_instances",
    "test_list_instances_by_status",
    "test_list_executions",
    "test_get_instance_info",
    "test_get_execution_info",
    "test_get_system_metrics",
    "test_get_queue_depths",
];

const KV_DELETION_AND_PRUNING: &[&str] = &[
    "test_kv_prune_preserves_overwritten",
    "test_kv_prune_preserves_all_keys",
    "test_kv_prune_current_execution_protected",
    "test_kv_delta_prune_untouched_key_survives",
    "test_kv_delete_instance_cascades",
    "test_kv_delete_instance_with_children",
    "test_kv_delta_delete_instance_cascades",
];

const HOLDS_BY_OPERATORS: &[&str] = &[
    "a_held_instance_gets_no_turn",
    "messages_for_a_held_instance_wait_in_order",
    "a_hold_waits_for_a_running_turn",
    "an_expired_lease_ends_with_a_hold",
    "a_cancellation_releases_a_held_instance",
    "no_turn_runs_ahead_of_a_hold",
    "a_deleted_instance_is_not_held",
    "held_messages_are_counted_apart",
    "the_oldest_due_item_may_be_fetched",
    "instances_are_held_once_and_listed",
    "orchestrations_are_paused_once_and_listed",
    "a_resumption_ends_one_pause",
    "the_audit_keeps_its_records",
];

/// All but the one about fetches that wait.
const RETENTION: &[&str] = &[
    "the_oldest_instances_are_listed_first",
    "only_old_roots_are_deleted",
    "a_running_descendant_keeps_its_tree",
    "undelivered_items_keep_their_tree",
    "concurrent_deletions_by_age_count_each_tree_once",
    "old_records_of_the_audit_are_pruned",
    "old_dead_letters_are_pruned",
];

/// All but the one about keys of messages, which this provider does not keep.
const TRANSFERS: &[&str] = &[
    "an_export_has_everything_of_an_instance",
    "an_import_is_exported_unchanged",
    "an_imported_instance_goes_on",
    "an_import_refuses_a_taken_id",
    "an_import_refuses_contradictions",
    "an_imported_instance_stays_held",
    "an_import_is_fetched_and_audited",
    "a_large_instance_is_imported_whole",
    "ids_without_an_instance_are_listed",
];

const REQUEUES: &[&str] = &[
    "dead_letters_are_paged_by_number",
    "a_requeued_message_is_delivered_as_new",
    "a_requeued_activity_is_delivered_as_new",
    "an_undeliverable_dead_letter_stays",
    "a_dropped_dead_letter_is_gone",
];

const TIMES_TREES_AND_DEPTHS: &[&str] = &[
    "each_execution_keeps_its_own_state",
    "an_execution_that_runs_again_has_not_ended",
    "pruning_by_time_finds_continued_executions",
    "a_running_descendant_keeps_its_root",
    "a_given_back_item_counts_as_waiting",
];

const CORRUPTED_HISTORIES: &[&str] = &[
    "test_fetch_corrupted_history_filtered_vs_unfiltered",
    "test_fetch_deserialization_error_increments_attempt_count",
    "test_fetch_deserialization_error_eventually_reaches_poison",
    "test_fetch_filter_applied_before_history_deserialization",
    "test_ack_appends_event_to_corrupted_history",
];

/// The expected failure message of a validation, if it must fail.
fn failure_of(validation: &Validation) -> Option<&'static str> {
    let listed = FAILS.iter().find(|(category, names, _)| {
        *category == validation.category && (names.is_empty() || names.contains(&validation.name))
    });
    listed.map(|(.., text)| *text)
}

/// The suite requires no more of outside stores than the contract: the failing validations are about management or damaged data,
/// which this provider does not support, or about the few rules that are new here.
#[tokio::test(start_paused = true)]
async fn the_first_provider_fails_only_the_listed_validations() {
    for ValidationResult { validation, outcome } in run_all_validations(&MyFactory).await.results {
        match (&outcome, failure_of(&validation)) {
            (ValidationOutcome::Failed(text), Some(expected)) => {
                assert!(text.contains(expected), "{validation:?} fails for another reason: {text}");
            }
            (ValidationOutcome::Failed(text), None) => panic!("{validation:?}: {text}"),
            (_, Some(expected)) => panic!("{validation:?} no longer fails with '{expected}': {outcome:?}"),
            (_, None) => {}
        }
    }
}
