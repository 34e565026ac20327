//! Mistakes that users make. For each, the kit reports the mistake, and the corrected program passes.

mod cancels;
mod code;
mod effects;
mod waits;
