//! What an instance waits for: its open operations, from its history, and how far each has come, from the queues. For tools
//! that show instances; nothing here decides anything.

mod open;
mod wait;

pub use open::{OpenOperation, Operation, open_operations};
pub use wait::{Progress, TurnState, Wait, turn_state, waits};
