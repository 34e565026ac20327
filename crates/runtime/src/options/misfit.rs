//! The policy for instances that their code does not fit.

/// The policy for an instance whose code does not match its history or panics, or whose orchestration no node registers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMisfit {
    /// The instance fails, as the contract says. With both policies, a turn whose history takes a patch that the code does not ask for
    /// is given back for a node with newer code.
    #[default]
    Fail,
    /// The instance is parked: the store holds it with the reason, and no runtime runs it until it is released by
    /// [`Client::resume_instance`](crate::Client::resume_instance), or by a runtime with this policy and another
    /// [`RuntimeOptions::build_id`](super::RuntimeOptions::build_id), at its start or when the build that parked it has no live node. Messages of the instance wait. A cancellation releases the instance
    /// too, which then fails if its code still does not fit. On a store that cannot hold instances the instance fails. The reason
    /// of a hold after a panic lacks the message of the panic, which may quote a payload: the panic hook prints that message to the
    /// error output of the process.
    Park,
}
