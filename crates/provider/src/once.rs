//! The answer to a message that is stored at most once.

/// The answer to [`Provider::enqueue_once`](crate::Provider::enqueue_once).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EnqueueOnce {
    /// The message and its key are stored.
    Stored,
    /// A message with this key was stored for the instance before. Nothing changed.
    Repeated,
    /// The instance has ended. Nothing changed.
    Ended,
    /// The store has neither a row nor a waiting start of the instance. Nothing changed.
    NotFound,
    /// As many messages wait for the instance as the caller allows. Nothing changed: the key is free.
    Full,
    /// The store keeps no keys. Nothing changed.
    Unsupported,
}
