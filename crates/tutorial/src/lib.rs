//! The store that `docs/provider-tutorial.md` builds step by step.
//!
//! [`FileStore`] keeps the whole store in memory and writes all of it to one JSON file after every change. It follows
//! every rule of the contract and passes the whole validation suite. Each file holds one operation and can be read from top
//! to bottom. The cost of a change grows with the size of the store: it is for learning and for small tools.

mod admin;
mod commit_turn;
mod delete;
mod disk;
mod enqueue;
mod fetch_activity;
mod fetch_turn;
mod finish_activity;
mod inspect;
mod keep_turn;
mod key_values;
mod orphans;
mod pending;
mod provider;
mod prune;
mod read;
mod sessions;
mod start;
mod state;
mod store;
#[cfg(test)]
mod tests;

pub use store::FileStore;

/// The examples of these pages and skills are documentation tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/provider-guide.md")]
    pub mod provider_guide {}
    #[doc = include_str!("../../../docs/string-api.md")]
    pub mod string_api {}
    #[doc = include_str!("../../../skills/outlast-orchestrations/SKILL.md")]
    pub mod orchestrations {}
    #[doc = include_str!("../../../skills/outlast-provider/SKILL.md")]
    pub mod provider {}
}
