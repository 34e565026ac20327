//! What two stores would both decide, decided once: what a commit writes, what a batch of messages means for an
//! instance, when things become visible, which stored rows are readable, which migrations are due.
//!
//! Nothing here talks to a database. A store is SQL (or documents) and row mapping around these functions.

pub mod context;
pub mod migrations;
pub mod orphans;
pub mod pin;
pub mod plan;
pub mod rows;
pub mod token;
pub mod url;
mod watches;

pub use context::{Context, resolve};
pub use plan::{CommitPlan, HistoryRow, KvChange, MessageRow, WorkRow};
pub use token::Token;
pub use watches::Watches;

/// Instances that a bulk operation takes when no limit is given.
pub const DEFAULT_BULK_LIMIT: u32 = 1_000;

/// What an operation with an unknown, released or taken-over token says.
pub fn invalid_token(token: &str) -> String {
    format!("Invalid lock token '{token:.100}': the lease was released, taken over, cancelled or has expired")
}

/// Whether a status ends an execution.
pub fn is_final(status: &str) -> bool {
    outlast_model::ExecutionStatus::from_text(status)
        .is_some_and(outlast_model::ExecutionStatus::ends_execution)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_token_is_quoted_but_not_at_any_length() {
        assert!(
            invalid_token("lock_1.x").starts_with("Invalid lock token 'lock_1.x': the lease was released")
        );
        assert!(invalid_token(&"x".repeat(10_000)).len() < 300);
    }

    #[test]
    fn three_statuses_end_an_execution() {
        let cases = [
            ("Completed", true),
            ("Failed", true),
            ("ContinuedAsNew", true),
            ("Running", false),
            ("", false),
        ];
        for (status, expected) in cases {
            assert_eq!(is_final(status), expected, "{status}");
        }
    }
}
