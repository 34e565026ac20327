//! The weaknesses of the reference (spec/runtime.md 12), by number, tested end to end.

mod c04_renewals;
mod c05_outages;
mod c08_give_back;
mod c16_identity;
mod c17_panics;
mod o01_cancellation;
mod o04_metrics;
mod o04_waits;
mod performance;
