//! Answers to calls that hold and release instances.

/// The answer to [`ProviderAdmin::hold_instance`](crate::ProviderAdmin::hold_instance),
/// [`Provider::hold_turn`](crate::Provider::hold_turn) and
/// [`ProviderAdmin::pause_orchestration`](crate::ProviderAdmin::pause_orchestration).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HoldOutcome {
    /// The instance is held, or the orchestration is paused, from now on.
    Held,
    /// The instance was held, or the orchestration paused, before. The earlier hold stays, with its reason.
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

/// The answer to [`ProviderAdmin::release_instance`](crate::ProviderAdmin::release_instance) and
/// [`ProviderAdmin::resume_orchestration`](crate::ProviderAdmin::resume_orchestration).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReleaseOutcome {
    /// The instance is no longer held, or the orchestration no longer paused.
    Released,
    /// The instance was not held, or the orchestration not paused.
    NotHeld,
    /// The store cannot hold instances.
    Unsupported,
}
