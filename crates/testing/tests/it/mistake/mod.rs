//! Mistakes that users make. For each, the kit reports the mistake, and the corrected program passes.

mod code;
mod effects;
mod waits;
