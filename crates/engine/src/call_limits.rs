//! Limits that are checked when a durable call is made. [`outlast_model::limits::Limits`] explains each.

use crate::state::State;

impl State {
    pub(crate) fn check_name(&mut self, what: &str, name: &str) {
        let (size, limit) = (name.len(), self.limits.name_bytes);
        if size > limit {
            let shown: String = name.chars().take(40).collect();
            self.violate(format!(
                "{what} '{shown}...' has {size} bytes, the limit is {limit}: shorten it, or raise limits.name_bytes"
            ));
        }
    }

    pub(crate) fn check_payload(&mut self, what: &str, name: &str, payload: &str) {
        let (size, limit) = (payload.len(), self.limits.payload_bytes);
        if size > limit {
            self.violate(too_large(&format!("{what} '{name}'"), size, limit));
        }
    }
}

/// The error text for a payload above the limit.
pub(crate) fn too_large(what: &str, size: usize, limit: usize) -> String {
    format!(
        "{what} has {size} bytes, the limit is {limit}: store it elsewhere and pass a reference, or raise \
         limits.payload_bytes"
    )
}
