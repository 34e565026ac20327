//! Explains what an instance waits for: its open operations, from its history, and their progress, from the queues. For tools that
//! show instances; the runtime does not use it.

mod open;
mod wait;

pub use open::{OpenOperation, Operation, open_operations};
pub use wait::{Progress, TurnState, Wait, turn_state, waits};
