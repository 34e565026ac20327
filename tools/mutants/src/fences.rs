//! The checks of tokens and leases, which prevent two owners of one lease. Every mutant of these checks must be caught.

use super::listed::Mutant;
use super::statements::Dialect;

/// A file, and its functions that check a token, the end of a lease, or the number of rows that a fenced statement changed.
const GUARDS: &[(&str, &[&str])] = &[
    ("crates/provider-kit/src/token.rs", &["Token::mint", "Token::mint_for", "draw_secret", "parse"]),
    ("crates/provider-kit/src/turn_at_fetch.rs", &["TurnAtFetch<&'a str>::parse"]),
    ("crates/provider-kit/src/leased.rs", &["<impl Drop for Guarded<L, O>>::drop"]),
    ("crates/sqlite/src/leased.rs", &["TurnFacts<'a>::of", "instance_of"]),
    ("crates/sqlite/src/commit.rs", &["commit", "abandon", "renew", "refused"]),
    ("crates/sqlite/src/activity.rs", &["lease", "ack", "renew", "abandon", "abandon_noted", "row_of"]),
    ("crates/sqlite/src/hold.rs", &["instance", "turn"]),
    ("crates/sqlite/src/reset.rs", &["instance", "is_current"]),
    ("crates/sqlite/src/fetch.rs", &["claim"]),
    ("crates/sqlite/src/session.rs", &["claim", "renew"]),
    ("crates/memory/src/hold.rs", &["State::hold", "State::hold_turn"]),
    ("crates/memory/src/reset.rs", &["State::reset"]),
    ("crates/memory/src/commit.rs", &["State::commit", "State::abandon_turn", "State::renew_turn"]),
    (
        "crates/memory/src/activity.rs",
        &[
            "State::lease_activity",
            "State::ack_activity",
            "State::renew_activity",
            "State::abandon_activity",
            "State::abandon_noted",
        ],
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

/// Statements that take, renew, check or release a lease. Statements that only search for rows to lease are not listed: a
/// listed statement checks the row again when it takes the lease.
const STATEMENTS: &[&str] = &[
    "abandon_activity",
    "abandon_messages",
    "abandon_noted",
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

/// Whether the mutant is in a check of a token or lease.
pub(super) fn guards(mutant: &Mutant) -> bool {
    match Dialect::of(&mutant.file) {
        Some(Dialect::Sqlite) => return STATEMENTS.contains(&mutant.function.as_str()),
        Some(Dialect::Postgres) => return false,
        None => {}
    }
    GUARDS
        .iter()
        .any(|(file, functions)| *file == mutant.file && functions.contains(&mutant.function.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_toolkit::process;

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
            let known = crate::statements::list(Dialect::Sqlite).unwrap();
            assert!(known.iter().any(|mutant| mutant.function == *statement), "{statement}");
        }
    }
}
