//! The rules, with the reason of each rule and tests that violate it.

pub(super) mod architecture;
pub(super) mod blocks;
pub(super) mod counts;
pub(super) mod dependencies;
pub(super) mod edges;
pub(super) mod links;
pub(super) mod lints;
pub(super) mod one_call;
pub(super) mod pages;
pub(super) mod publish;
pub(super) mod refused;
pub(super) mod root;
pub(super) mod scores;
pub(super) mod skills;
pub(super) mod sql;
