//! The named sequences of every run, and the macro that makes a test of each.

use super::ops::Op;
use super::sequence::{Run, Sequence};
use super::{leases, regressions};

/// Every named sequence by group and name.
#[doc(hidden)]
#[macro_export]
macro_rules! __each_story {
    ([$($then:tt)+] $argument:tt) => {
        $($then)+! { $argument
            leases: [
                turns_end_in_the_same_millisecond,
                a_renewal_lengthens_one_lease_with_its_messages_and_never_shortens_it,
                activities_and_sessions_end_in_the_same_millisecond,
            ],
            regressions: [
                an_instance_that_starts_has_no_history_whatever_was_appended,
                lease_refuses_run_ahead_turns_after_the_clock_is_set_back,
                events_that_were_appended_before_the_execution_count,
                an_appended_failure_is_the_outcome_of_an_execution_that_failed,
                expired_lease_is_removed_with_its_unreadable_messages,
                expired_lease_is_removed_when_only_orphans_remain,
                unreadable_messages_are_set_aside_in_their_order,
                a_deletion_names_the_running_instance_before_the_orphan,
                keys_that_an_older_execution_changed_are_merged_by_the_newest,
                roots_that_stay_do_not_count_against_the_limit_of_a_bulk_deletion,
                pruning_leaves_the_time_of_the_last_turn,
                a_page_position_is_taken_only_as_it_was_given_out,
                a_clock_that_is_set_back_changes_no_order,
                a_clock_that_is_set_back_lengthens_leases,
                instance_has_the_queue_position_of_its_first_message,
                an_unreadable_start_is_not_waited_for,
                an_unreadable_activity_claims_no_session,
            ],
        }
    };
}

/// Turns a function that runs a [`Sequence`] on a new store into tests: `agrees_with_the_specification`, which runs this number of
/// random sequences, and one test for each named sequence.
///
/// The function is a `fn(&Sequence) -> Result<(), String>`. It is named in the module that calls the macro, and used in
/// modules inside of it.
#[macro_export]
macro_rules! model_tests {
    ($cases:expr, $run:ident) => {
        #[test]
        fn agrees_with_the_specification() {
            $crate::model::agrees_with_the_specification($cases, &$run);
        }
        $crate::__each_story! { [$crate::__story_tests] $run }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __story_tests {
    ($run:tt $($group:ident: [$($name:ident),* $(,)?],)*) => {
        $(mod $group {
            $(#[test]
            fn $name() {
                $crate::model::check_story(stringify!($group), stringify!($name), &super::$run);
            })*
        })*
    };
}

/// Runs one named sequence; panics if the store differs from the specification.
#[doc(hidden)]
pub fn check_story(group: &str, name: &str, run: Run<'_>) {
    macro_rules! by_name {
        ($argument:tt $($group:ident: [$($name:ident),* $(,)?],)*) => {
            match (group, name) {
                $($((stringify!($group), stringify!($name)) => $group::$name(run),)*)*
                _ => panic!("no story {group}::{name}"),
            }
        };
    }
    __each_story! { [by_name] () }
}

/// Runs the parts one after the other, as one sequence.
pub(super) fn agree(run: Run<'_>, parts: impl IntoIterator<Item = Vec<Op>>) {
    let sequence = Sequence(parts.into_iter().flatten().collect());
    run(&sequence).unwrap_or_else(|difference| panic!("the stores differ at {difference}"));
}
