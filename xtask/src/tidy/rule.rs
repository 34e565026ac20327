//! The rules, one file each, with the reason of the rule and tests that violate it.

pub(super) mod ambient;
pub(super) mod architecture;
pub(super) mod counts;
pub(super) mod dependencies;
pub(super) mod edges;
pub(super) mod forbidden;
pub(super) mod leftovers;
pub(super) mod links;
pub(super) mod lints;
pub(super) mod machine_paths;
pub(super) mod one_call;
pub(super) mod pages;
pub(super) mod root;
pub(super) mod scoreboard;
pub(super) mod skills;
pub(super) mod sleep;
pub(super) mod sql;
pub(super) mod test_util;
