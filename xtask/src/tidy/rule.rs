//! The rules, one file each: what it asks, why, and tests that show it failing.

pub(super) mod ambient;
pub(super) mod counts;
pub(super) mod dependencies;
pub(super) mod edges;
pub(super) mod forbidden;
pub(super) mod leftovers;
pub(super) mod links;
pub(super) mod lints;
pub(super) mod machine_paths;
pub(super) mod pages;
pub(super) mod root;
pub(super) mod scoreboard;
pub(super) mod skills;
pub(super) mod sleep;
pub(super) mod sql;
