//! The marker of a patch in a history: a write of a reserved key.

use crate::event::EventKind;

/// The keys of markers begin with this text.
pub const PATCH_KEY_PREFIX: &str = "__outlast:patch:";

/// The patch whose marker an event is.
pub fn patch_of(kind: &EventKind) -> Option<&str> {
    match kind {
        EventKind::KeyValueSet { key, .. } => key.strip_prefix(PATCH_KEY_PREFIX),
        _ => None,
    }
}
