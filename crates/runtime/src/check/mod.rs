//! Recorded histories against the present code: the replay check of the test kit, and the answers of a program to `outlast check`.
//!
//! | file | holds |
//! |---|---|
//! | `build.rs` | turns and histories that run again on a fresh call of the code |
//! | `misfit.rs` | one recorded execution, replayed, and the first event that the code does not repeat |
//! | `protocol.rs` | the lines that the command and the program exchange |
//! | `answer.rs` | a program that answers instead of starting its runtime |

mod answer;
mod build;
mod misfit;
mod protocol;

pub use answer::answer;
pub(crate) use answer::answer_and_exit;
pub use build::{Build, Turn};
pub use misfit::{Cause, Checked, Misfit, Recorded};
pub use protocol::{Finding, Greeting, KvItem, PREFIX, PROTOCOL, Question, VARIABLE, Verdict};
