//! The typed layer: programs with attributes, on every store, and beside the string API.

mod edits;
mod errors;
mod mixing;
mod order;
mod requests;
mod sends;
mod values;
