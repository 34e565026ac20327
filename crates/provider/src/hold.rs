//! Answers to calls that hold and release instances.

/// The answer to [`ProviderAdmin::hold_instance`](crate::ProviderAdmin::hold_instance) and
/// [`Provider::hold_turn`](crate::Provider::hold_turn).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HoldOutcome {
    /// The instance is held from now on.
    Held,
    /// The instance was held before. The earlier hold stays, with its reason.
    AlreadyHeld,
    /// A turn of the instance runs. Nothing changed: the caller tries again when the turn is over.
    InTurn {
        /// The end of the lease of the turn, by the store's clock, unless the holder commits or renews it.
        locked_until_ms: u64,
    },
    /// A cancellation waits for the instance, which must be able to end. Nothing changed.
    Cancelled,
    /// The instance has ended.
    Ended,
    /// The store has neither a row nor a waiting start of the instance.
    NotFound,
    /// The store cannot hold instances. Nothing changed.
    Unsupported,
}

/// The answer to [`ProviderAdmin::release_instance`](crate::ProviderAdmin::release_instance).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReleaseOutcome {
    /// The instance is no longer held.
    Released,
    /// The instance was not held.
    NotHeld,
    /// The store cannot hold instances.
    Unsupported,
}
