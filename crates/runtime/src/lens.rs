//! Explains an instance from its history and its queues: waits, diagnosis, timeline, state at an event. For tools that show instances;
//! the runtime does not use it. The code is in the crate `outlast-lens`.

pub use outlast_lens::*;
