//! Answers to calls that change dead letters.

/// The answer to [`ProviderAdmin::requeue_dead_letter`](crate::ProviderAdmin::requeue_dead_letter) and
/// [`ProviderAdmin::drop_dead_letter`](crate::ProviderAdmin::drop_dead_letter).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeadLetterOutcome {
    /// The dead letter is back in its queue, or deleted, and the audit has a record.
    Done,
    /// There is no such dead letter. Nothing changed.
    NotFound,
    /// This build cannot deliver the item either. Nothing changed.
    Undeliverable {
        /// The reason: the text does not decode, or the item belongs to another instance or queue.
        reason: String,
    },
    /// The store cannot change dead letters. Nothing changed.
    Unsupported,
}
