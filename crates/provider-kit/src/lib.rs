//! The decisions that all stores share: which rows a commit writes, what a fetch does with a batch of messages, when a message
//! becomes visible, how stored rows are decoded, which migrations are due.
//!
//! This crate does not access a database. A store adds the SQL (or documents) and the mapping of rows.

pub mod context;
mod dead_letter;
pub mod fetch;
pub mod leased;
pub mod listing;
pub mod migrations;
mod node;
pub mod orphans;
pub mod pin;
pub mod plan;
pub mod queue;
pub mod removed;
mod reset;
pub mod rows;
pub mod token;
pub mod transfer;
pub mod turn_at_fetch;
pub mod url;
mod watches;

pub use context::{Context, resolve};
pub use dead_letter::RequeuedRow;
pub use fetch::Fetch;
pub use leased::{Guarded, LeasedTurn, ResolvedTurn};
pub use node::{NodeRow, node_record};
pub use plan::{ActivityRow, CommitPlan, HistoryRow, KvChange, MessageRow};
pub use reset::ResetRows;
pub use token::Token;
pub use transfer::ImportRows;
pub use turn_at_fetch::TurnAtFetch;
pub use watches::Watches;

/// The most instances of a bulk operation without a limit.
pub const DEFAULT_BULK_LIMIT: u32 = 1_000;

/// The error message for a token that is unknown, released or taken over.
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
    fn an_invalid_token_is_quoted_and_truncated() {
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
