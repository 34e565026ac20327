//! Helpers for validations: messages, turns and fetches in one line each.

mod calls;
mod events;
mod instances;
mod items;
mod management;
mod turn;

pub(crate) use calls::*;
pub(crate) use events::*;
pub(crate) use instances::*;
pub(crate) use items::*;
pub(crate) use management::*;
pub(crate) use turn::*;
