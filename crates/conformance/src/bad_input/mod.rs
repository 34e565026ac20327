//! Invalid and unusual ids, texts and numbers.

mod ids;
mod values;

pub use ids::*;
pub use values::*;
