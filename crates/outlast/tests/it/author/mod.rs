//! The typed layer: programs with attributes, on every store, and beside the string API.

mod cancel;
mod codec;
mod edits;
mod errors;
mod mixing;
mod order;
mod requests;
mod retries;
mod sends;
mod values;
