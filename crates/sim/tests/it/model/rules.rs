//! The rules that the models require of a store, and the validations that check them.
//!
//! Every bug of a model has a rule here: for stores, with the validations that fail without the rule; for the runtime
//! and the engine, with the name of their test.

use super::child::Family;
use super::lease::Leases;
use super::search::Protocol;
use super::work::Activities;
use async_trait::async_trait;
use outlast_conformance::{ProviderFactory, TokioClock, Validation, ValidationOutcome, validations};
use outlast_memory::{Defect, MemoryProvider, Rules};
use outlast_provider::Provider;
use outlast_testkit::virtual_time;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A rule for stores.
struct Rule {
    rule: &'static str,
    /// The bugs of the models that break this rule.
    bugs: &'static str,
    /// Defects of the memory store that break this rule.
    defects: &'static [Defect],
    /// Validations that fail without the rule.
    checked_by: &'static [&'static str],
}

const RULES: &[Rule] = &[
    Rule {
        rule: "a commit checks its token in the step that writes",
        bugs: "lease::CheckThenWrite",
        defects: &[Defect::AckAfterTakeover],
        checked_by: &["fencing::a_commit_after_takeover_writes_nothing"],
    },
    Rule {
        rule: "a lease that ended commits nothing, even if no worker took over",
        bugs: "lease::ExpiryIgnored",
        defects: &[Defect::AckIgnoresExpiry],
        checked_by: &["fencing::a_commit_after_expiry_writes_nothing"],
    },
    Rule {
        rule: "a refused commit changes nothing",
        bugs: "lease::RefusedCommitDeletes",
        defects: &[Defect::HalfABatchCommitted],
        checked_by: &["fencing::a_refused_commit_changes_nothing"],
    },
    Rule {
        rule: "a commit deletes the messages that its fetch covered, and none that came later",
        bugs: "lease::LateMessagesDeleted",
        defects: &[Defect::AckDeletesLateMessages],
        checked_by: &[
            "instance_locking::test_message_tagging_during_lock",
            "instance_locking::test_ack_only_affects_locked_messages",
        ],
    },
    Rule {
        rule: "a commit invalidates its token, so that it cannot be repeated after a lost answer",
        bugs: "lease::TokenOutlivesCommit",
        defects: &[Defect::AckKeepsLease],
        checked_by: &["fencing::one_lease_commits_once", "fencing::a_used_token_is_refused"],
    },
    Rule {
        rule: "no two leases have the same token",
        bugs: "lease::TokensRepeat",
        defects: &[Defect::TokensRepeat],
        checked_by: &["instance_locking::test_lock_token_uniqueness", "traps::tokens_cannot_be_guessed"],
    },
    Rule {
        rule: "a renewal never revives",
        bugs: "lease::RenewalRevives, work::RenewalRevives, work::SessionRevives",
        defects: &[Defect::RenewRevives, Defect::WorkRenewRevives, Defect::SessionRenewRevives],
        checked_by: &["leases::a_renewal_never_revives_a_lease"],
    },
    Rule {
        rule: "a lease counts from the claim, not from the call",
        bugs: "lease::LeaseStartsAtCall",
        defects: &[Defect::LeaseStartsAtCall],
        checked_by: &["leases::a_lease_starts_when_the_item_is_claimed"],
    },
    Rule {
        rule: "a fetch never returns a leased item",
        bugs: "lease::LeaseNotExclusive, work::LeaseNotExclusive",
        defects: &[Defect::LeaseNotExclusive, Defect::BatchHandsOutTwice],
        checked_by: &[
            "instance_locking::test_exclusive_instance_lock",
            "batch_fetch::a_batch_is_in_order_and_bounded",
        ],
    },
    Rule {
        rule: "a takeover covers the messages that the lost lease covered",
        bugs: "lease::OldCoverKept",
        defects: &[Defect::TakeoverKeepsOldCover],
        checked_by: &["leases::a_takeover_covers_the_messages_of_the_old_lease"],
    },
    Rule {
        rule: "only its holder abandons a lease",
        bugs: "lease::StrangerGivesBack, work::StrangerGivesBack",
        defects: &[Defect::AbandonAfterTakeover],
        checked_by: &["fencing::a_lost_token_cannot_disturb_the_new_holder"],
    },
    Rule {
        rule: "every lease ends, and so does every session",
        bugs: "lease::LeaseNeverEnds, work::SessionNeverEnds",
        defects: &[],
        checked_by: &[
            "lock_expiration::test_lock_expires_after_timeout",
            "sessions::test_session_claimable_after_lock_expiry",
        ],
    },
    Rule {
        rule: "an activity leaves its queue in the step that stores its completion",
        bugs: "work::DeleteThenTell",
        defects: &[Defect::WorkAckLosesCompletion],
        checked_by: &["queue_semantics::test_worker_ack_atomicity"],
    },
    Rule {
        rule: "a lease that ended completes nothing",
        bugs: "work::ExpiryIgnored",
        defects: &[Defect::WorkAckIgnoresExpiry],
        checked_by: &[
            "fencing::a_late_completion_writes_nothing",
            "lock_expiration::test_worker_ack_fails_after_lock_expiry",
        ],
    },
    Rule {
        rule: "an activity that is gone is not completed",
        bugs: "work::GoneIsFine",
        defects: &[Defect::WorkAckUnknownTokenOk],
        checked_by: &[
            "fencing::one_lease_completes_once",
            "cancellation::test_ack_work_item_fails_when_entry_deleted",
        ],
    },
    Rule {
        rule: "a turn's activities are stored before those that it cancels are removed",
        bugs: "work::CancelBeforeEnqueue",
        defects: &[Defect::CancelBeforeEnqueue],
        checked_by: &["cancellation::test_same_activity_in_worker_items_and_cancelled_is_noop"],
    },
    Rule {
        rule: "a session is claimed in the step that finds it free",
        bugs: "work::SessionClaimedLate",
        defects: &[Defect::SessionStolen],
        checked_by: &["sessions::test_concurrent_session_claim_only_one_wins"],
    },
    Rule {
        rule: "an activity of a session goes to the owner of the session",
        bugs: "work::SessionIgnored",
        defects: &[Defect::SessionStolen],
        checked_by: &["sessions::test_session_affinity_blocks_other_worker"],
    },
    Rule {
        rule: "messages for an instance that has not started are kept, and block no other instance",
        bugs: "child::OrphanDropped, child::NeverStartedIsCancelled",
        defects: &[Defect::OrphanControlMessagesDropped, Defect::OrphanBlocksQueue],
        checked_by: &[
            "orphans::orphans_are_delivered_once_their_instance_starts",
            "orphans::an_orphan_does_not_block_others",
        ],
    },
    Rule {
        rule: "a start keeps the parent that waits for its instance",
        bugs: "child::LinkLost",
        defects: &[Defect::SuccessorLosesParent],
        checked_by: &["families::a_start_keeps_its_waiting_parent"],
    },
    Rule {
        rule: "a fetch still returns an ended instance, so that a second start of its id is answered",
        bugs: "child::CollisionNotTold",
        defects: &[Defect::EndedTakesNothing],
        checked_by: &["families::an_ended_instance_is_still_fetched"],
    },
];

/// Bugs that no store can have. The runtime and the engine prevent them, and have tests with these names.
const NOT_OF_STORES: &[(&str, &str)] = &[
    ("work::CancelledByAnError", "c04_retryable_errors_of_renewals_are_retried"),
    ("child::ExecutionNotMatched", "outcomes_of_other_executions_are_dropped"),
    ("child::SecondAnswerRecorded", "c10_first_outcome_of_a_decision_counts"),
    ("child::NeverStartedIsCancelled", "c2_children_of_this_turn_are_started_before_they_are_cancelled"),
    ("child::DetachedLost", "c3_detached_starts_survive_every_ending"),
    ("child::FailureNotTold", "c7_poisoned_instance_fails_its_parent_and_cancels_its_activities"),
    ("child::CollisionNotTold", "child_id_that_exists_fails_the_call_of_the_parent"),
    ("child::LinkLost", "the_execution_ends_and_the_next_begins"),
    (
        "child::PoisonSwallowsStarts",
        "parent_of_a_start_between_executions_gets_a_failure_when_the_instance_is_poisoned",
    ),
    ("child::OwnStartCollides", "child_id_that_exists_fails_the_call_of_the_parent"),
    ("child::ChildForgotten", "cancel_closes_all_open_decisions"),
    ("child::DroppedInBetween", "cancellation_between_two_executions_cancels_the_successor"),
];

/// Creates memory stores with these rules on tokio's clock.
struct Stores(Rules);

#[async_trait]
impl ProviderFactory for Stores {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        Arc::new(MemoryProvider::with_clock(Arc::new(TokioClock::start())).with_rules(self.0))
    }
    fn waits(&self) -> bool {
        true
    }
}

/// Whether a memory store with this defect passes the validation.
fn passes(validation: &Validation, defect: Option<Defect>) -> bool {
    let outcome = virtual_time::run(validation.outcome(&Stores(Rules { defect })));
    outcome == ValidationOutcome::Passed
}

#[test]
fn every_rule_has_validations_that_fail_without_it() {
    let all = validations();
    let find = |name: &str| {
        let found = all.iter().find(|validation| format!("{validation:?}") == name);
        found.unwrap_or_else(|| panic!("no validation {name}"))
    };
    let mut unchecked = Vec::new();
    for Rule { rule, defects, checked_by, .. } in RULES {
        assert!(!checked_by.is_empty(), "nothing checks that {rule}");
        for name in *checked_by {
            assert!(passes(find(name), None), "{name} refuses a store in which {rule}");
            if !defects.is_empty() && defects.iter().all(|defect| passes(find(name), Some(*defect))) {
                unchecked.push(format!("{name} notices none of {defects:?}"));
            }
        }
        for defect in *defects {
            if checked_by.iter().all(|name| passes(find(name), Some(*defect))) {
                unchecked.push(format!("{defect:?} is noticed by none of {checked_by:?}"));
            }
        }
    }
    assert_eq!(unchecked, [""; 0]);
}

#[test]
fn every_bug_of_a_model_has_a_rule() {
    fn bugs<P: Protocol>(model: &'static str) -> impl Iterator<Item = String> {
        P::BUGS.iter().map(move |(bug, _)| format!("{model}::{bug:?}"))
    }
    let all: BTreeSet<String> =
        bugs::<Leases>("lease").chain(bugs::<Activities>("work")).chain(bugs::<Family>("child")).collect();
    let of_stores = RULES.iter().flat_map(|rule| rule.bugs.split(", "));
    let ruled: BTreeSet<String> =
        of_stores.chain(NOT_OF_STORES.iter().map(|(bug, _)| *bug)).map(String::from).collect();
    assert_eq!(all, ruled);
}
