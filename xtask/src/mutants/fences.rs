//! The checks of tokens and leases: what keeps two owners apart. Every mutant of these must be caught.

use super::listed::Mutant;
use super::statements;

/// A file, and the functions in it that look at a token, at the end of a lease, or at how many rows a fence changed.
const GUARDS: &[(&str, &[&str])] = &[
    ("crates/provider-kit/src/token.rs", &["Token::mint", "parse"]),
    (
        "crates/sqlite/src/commit.rs",
        &["Seen<'a>::of", "instance_of", "commit", "abandon", "renew", "refused"],
    ),
    ("crates/sqlite/src/activity.rs", &["lease", "ack", "renew", "abandon", "row_of"]),
    ("crates/sqlite/src/fetch.rs", &["claim"]),
    ("crates/sqlite/src/session.rs", &["claim", "renew"]),
    ("crates/memory/src/commit.rs", &["State::commit", "State::abandon_turn", "State::renew_turn"]),
    (
        "crates/memory/src/activity.rs",
        &["State::lease_activity", "State::ack_activity", "State::renew_activity", "State::abandon_activity"],
    ),
    (
        "crates/memory/src/rules/lease.rs",
        &[
            "LeaseRules::turn_fence",
            "LeaseRules::activity_fence",
            "LeaseRules::unknown_token",
            "LeaseRules::renewed",
        ],
    ),
    (
        "crates/memory/src/queue.rs",
        &["Activity::is_leased", "ActivityQueue::lease", "ActivityQueue::by_token", "ActivityQueue::release"],
    ),
    (
        "crates/memory/src/rules/activity.rs",
        &["ActivityRules::session_admits", "ActivityRules::session_is_live"],
    ),
    ("crates/memory/src/session.rs", &["State::renew_sessions"]),
    ("crates/memory/src/state.rs", &["State::live_lease", "State::instance_of_token"]),
    (
        "crates/runtime/src/dispatch/lease.rs",
        &[
            "State::mark_lost",
            "Leases::hold",
            "Leases::release",
            "Leases::begin_renewal",
            "Leases::on_renewal_answer",
            "Lease::token",
            "Lease::lost",
            "Lease::settle",
            "<impl Drop for Lease>::drop",
            "renew",
            "renew_leases",
        ],
    ),
];

/// Statements that take, keep, check or give up a lease. Those that only look for something to lease are not among them:
/// what they find is leased by one of these, which looks again.
const STATEMENTS: &[&str] = &[
    "abandon_activity",
    "abandon_messages",
    "claim_session",
    "cover_message",
    "cover_messages",
    "delete_covered_messages",
    "delete_leased_activity",
    "lease_activity",
    "lock_instance",
    "renew_activity",
    "renew_instance",
    "renew_messages",
    "renew_sessions",
    "stamp_session",
    "undo_cover",
    "unlock_instance",
    "unlock_live_instance",
];

pub(super) fn guards(mutant: &Mutant) -> bool {
    if mutant.file.starts_with(statements::FOLDER) {
        return STATEMENTS.contains(&mutant.function.as_str());
    }
    GUARDS
        .iter()
        .any(|(file, functions)| *file == mutant.file && functions.contains(&mutant.function.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    #[test]
    fn every_guard_exists() {
        for (file, functions) in GUARDS {
            let source = std::fs::read_to_string(process::root().join(file)).unwrap();
            for function in *functions {
                let name = function.rsplit("::").next().unwrap();
                let found =
                    source.contains(&format!("fn {name}(")) || source.contains(&format!("fn {name}<"));
                assert!(found, "{file}: {function}");
            }
        }
        for statement in STATEMENTS {
            let file = format!("{}/{statement}.sql", statements::FOLDER);
            assert!(process::root().join(&file).exists(), "{file}");
        }
    }
}
