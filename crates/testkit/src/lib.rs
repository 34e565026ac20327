//! Helpers that the simulator, the chaos runs, the fuzz targets and the benchmarks share.
//!
//! | module | holds |
//! |---|---|
//! | [`rng`] | random numbers that follow from a seed, and a digest that is equal in every run |
//! | [`entropy`] | the same numbers as an `Entropy` for stores and runtimes |
//! | [`counts`] | how often each key occurred |
//! | [`dead_end`] | searches a model for a state from which no end state can be reached |
//! | [`panics`] | collects the panics of a thread, also those that the runtime catches |
//! | [`figures`] | writes the figures of a run to a JSON file |
//! | [`folder`] | temporary folders in memory |
//! | `virtual_time` | runs a future under a paused clock (feature `virtual-time`) |
//!
//! The demo of the command `outlast` keeps its own generator: a published package cannot depend on this one. A test of the
//! command compares the two generators.

pub mod counts;
pub mod dead_end;
pub mod entropy;
pub mod figures;
pub mod folder;
pub mod panics;
pub mod rng;
#[cfg(feature = "virtual-time")]
pub mod virtual_time;
