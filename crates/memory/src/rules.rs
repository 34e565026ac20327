//! The rules of the contract, each stated once.
//!
//! An operation of the store asks its rules wherever a store can get the contract wrong. Each rule is a method with a
//! default body, and the default bodies together are the contract. With the feature `defects`, a store can be opened
//! with one wrong answer, which is how the validation suite shows that it can fail.

mod activity;
mod admin;
mod commit;
mod dead_letter;
mod fetch;
mod hold;
mod kv;
mod lease;
mod node;
mod once;
mod park;
mod reset;
mod retention;
mod start;
mod transfer;

pub(crate) use activity::ActivityRules;
pub(crate) use admin::AdminRules;
pub(crate) use commit::CommitRules;
pub(crate) use dead_letter::DeadLetterRules;
pub(crate) use fetch::FetchRules;
pub(crate) use hold::HoldRules;
pub(crate) use kv::KvRules;
pub(crate) use lease::{Fence, LeaseRules, Purpose};
pub(crate) use node::NodeRules;
pub(crate) use once::OnceRules;
pub(crate) use park::ParkRules;
pub(crate) use reset::ResetRules;
pub(crate) use retention::RetentionRules;
pub(crate) use start::StartRules;
pub(crate) use transfer::TransferRules;

#[cfg(feature = "defects")]
pub(crate) use crate::defects::Rules;
#[cfg(not(feature = "defects"))]
pub(crate) use Contract as Rules;

/// The contract: every rule with its default body.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Contract;

impl ActivityRules for Contract {}
impl AdminRules for Contract {}
impl CommitRules for Contract {}
impl DeadLetterRules for Contract {}
impl FetchRules for Contract {}
impl HoldRules for Contract {}
impl KvRules for Contract {}
impl LeaseRules for Contract {}
impl NodeRules for Contract {}
impl OnceRules for Contract {}
impl ParkRules for Contract {}
impl ResetRules for Contract {}
impl RetentionRules for Contract {}
impl StartRules for Contract {}
impl TransferRules for Contract {}
