//! The policy for instances that their code does not fit.

/// What a runtime does with an instance whose code does not match its history or panics, or whose orchestration no node registers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMisfit {
    /// The instance fails, as the contract says.
    #[default]
    Fail,
    /// The instance is parked: the store holds it with the reason, and no runtime runs it until it is released by
    /// [`Client::resume_instance`](crate::Client::resume_instance), or by the start of a runtime with another
    /// [`RuntimeOptions::build_id`](super::RuntimeOptions::build_id). Its messages wait. A cancellation releases it too, and then it
    /// fails if its code still does not fit. On a store that cannot hold instances it fails. The reason of a hold after a panic has not
    /// the message of the panic, which may quote a payload: the panic hook prints it to the error output of the process.
    Park,
}
