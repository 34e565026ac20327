//! The answer to a reset.

/// The answer to [`ProviderAdmin::reset_instance`](crate::ProviderAdmin::reset_instance).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResetOutcome {
    /// The new execution is stored, with its record in the audit.
    Done,
    /// A turn of the source runs. Nothing changed: the caller tries again when the turn is over.
    InTurn {
        /// The end of the lease of the turn, by the store's clock, unless the holder commits or renews it.
        locked_until_ms: u64,
    },
    /// The newest execution of the source is another one, or has other events, than the plan says. Nothing changed: the caller
    /// plans again.
    Changed,
    /// The id of a fork is taken. Nothing changed.
    Taken,
    /// The store has no row of the source.
    NotFound,
    /// The store cannot reset instances. Nothing changed.
    Unsupported,
}
