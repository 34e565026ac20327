//! Time to live: documents expire by `defaultTtl` of their container and by their own `ttl`.
//!
//! The emulator stores both and applies neither. The rig notes when a document expires and deletes it in the emulator
//! before it serves the first request after that time, so that reads, queries and feeds agree.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

/// A document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) database: String,
    pub(crate) container: String,
    /// The partition key header, in one spelling.
    pub(crate) partition: String,
    pub(crate) id: String,
}

#[derive(Default)]
pub(crate) struct Expiry {
    due: BTreeSet<(u64, Place)>,
    of: HashMap<Place, Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    at_s: u64,
    ttl_s: u64,
}

impl Expiry {
    /// Notes a document that was stored at `now_s`.
    pub(crate) fn stored(&mut self, place: Place, default_ttl: Option<i64>, own: Option<&Value>, now_s: u64) {
        self.gone(&place);
        if let Some(ttl_s) = effective_ttl(default_ttl, own) {
            let at_s = now_s.saturating_add(ttl_s);
            self.due.insert((at_s, place.clone()));
            self.of.insert(place, Entry { at_s, ttl_s });
        }
    }

    /// Notes a document that was changed without its `ttl`.
    pub(crate) fn touched(&mut self, place: &Place, now_s: u64) {
        if let Some(Entry { ttl_s, .. }) = self.of.get(place).copied() {
            self.stored(place.clone(), Some(-1), Some(&ttl_s.into()), now_s);
        }
    }

    pub(crate) fn gone(&mut self, place: &Place) {
        if let Some(entry) = self.of.remove(place) {
            self.due.remove(&(entry.at_s, place.clone()));
        }
    }

    /// Forgets the documents of a container, or of all containers of a database.
    pub(crate) fn dropped(&mut self, database: &str, container: Option<&str>) {
        let inside = |place: &Place| {
            place.database == database && container.is_none_or(|name| name == place.container)
        };
        self.due.retain(|(_, place)| !inside(place));
        self.of.retain(|place, _| !inside(place));
    }

    /// The documents that have expired.
    pub(crate) fn expired(&self, now_s: u64) -> Vec<Place> {
        self.due.iter().take_while(|(at_s, _)| *at_s <= now_s).map(|(_, place)| place.clone()).collect()
    }
}

/// The seconds until a document expires. A container without `defaultTtl` ignores the `ttl` of its documents.
fn effective_ttl(default_ttl: Option<i64>, own: Option<&Value>) -> Option<u64> {
    let default_ttl = default_ttl?;
    let ttl = own.and_then(Value::as_i64).unwrap_or(default_ttl);
    u64::try_from(ttl).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn own_ttl_counts_before_that_of_the_container() {
        let cases = [
            (None, Some(json!(5)), None),
            (Some(-1), None, None),
            (Some(-1), Some(json!(5)), Some(5)),
            (Some(60), None, Some(60)),
            (Some(60), Some(json!(5)), Some(5)),
            (Some(60), Some(json!(-1)), None),
        ];
        for (default_ttl, own, expected) in cases {
            assert_eq!(effective_ttl(default_ttl, own.as_ref()), expected, "{default_ttl:?} {own:?}");
        }
    }

    #[test]
    fn a_later_write_replaces_the_time() {
        let place = |id: &str| Place {
            database: "d".into(),
            container: "c".into(),
            partition: "p".into(),
            id: id.into(),
        };
        let mut expiry = Expiry::default();
        expiry.stored(place("a"), Some(10), None, 100);
        expiry.stored(place("b"), Some(10), None, 100);
        expiry.stored(place("c"), Some(10), None, 100);
        expiry.touched(&place("a"), 105);
        expiry.stored(place("b"), Some(10), Some(&json!(-1)), 105);
        assert_eq!(expiry.expired(109), []);
        assert_eq!(expiry.expired(110), [place("c")]);
        assert_eq!(expiry.expired(115), [place("c"), place("a")]);
        expiry.dropped("d", Some("other"));
        expiry.dropped("d", Some("c"));
        assert_eq!(expiry.expired(u64::MAX), []);
    }
}
