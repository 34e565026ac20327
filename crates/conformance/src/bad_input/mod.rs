//! Ids, texts and numbers that callers should not send, or may send though few do.

mod ids;
mod values;

pub use ids::*;
pub use values::*;
