//! Partitions of the container. The partition key of a document is the id of its instance, or a key of the store itself.
//!
//! Keys of the store begin with one `~`. The id of an instance that begins with `~` gets a second one, so that no instance
//! shares a partition with the store. A long id is hashed: a partition key has at most 2,048 bytes, and generated ids of
//! children have up to 4,096.
//!
//! | partition | holds |
//! |---|---|
//! | the id of an instance, `~` + such an id, `~#` + SHA-256 | the documents of the instance |
//! | `~sys` | the slot table, heartbeats, records of deletes, the paused orchestrations |
//! | `~audit` | the audit |
//! | `~nodes` | reports of nodes |
//! | `~ready-<n>` | hints of ready instances |
//! | `~work` | hints of ready activities |
//! | `~sess-<n>` | sessions |

use crate::ids::sha256_hex;
use crate::slots::fnv1a;

/// The longest id that is a partition key by itself.
const LONGEST_ID: usize = 1_500;

/// The number of partitions of sessions.
const SESSION_PARTITIONS: u64 = 4;

/// The partition of the store's own documents.
pub(crate) const SYSTEM: &str = "~sys";

/// The partition of the audit.
pub(crate) const AUDIT: &str = "~audit";

/// The partition of the reports of nodes.
pub(crate) const NODES: &str = "~nodes";

/// The partition of an instance.
pub(crate) fn instance(instance_id: &str) -> String {
    match instance_id {
        long if long.len() > LONGEST_ID => format!("~#{}", sha256_hex(long)),
        tilde if tilde.starts_with('~') => format!("~{tilde}"),
        plain => plain.to_string(),
    }
}

/// The meaning of a partition key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner<'a> {
    /// The instance with this id.
    Instance(&'a str),
    /// An instance with a long id, which its documents hold.
    LongId,
    /// The store.
    Store,
}

/// The owner of a partition that this store wrote.
pub(crate) fn owner(partition: &str) -> Owner<'_> {
    match partition.strip_prefix('~') {
        None => Owner::Instance(partition),
        Some(id) if id.starts_with('~') => Owner::Instance(id),
        Some(hash) if hash.starts_with('#') => Owner::LongId,
        Some(_) => Owner::Store,
    }
}

/// The partition of hints of ready instances.
pub(crate) fn ready(nth: u32) -> String {
    format!("~ready-{nth}")
}

/// The partition of hints of ready activities.
pub(crate) fn work() -> String {
    "~work".to_string()
}

/// The partitions of all sessions.
pub(crate) fn sessions() -> Vec<String> {
    (0..SESSION_PARTITIONS).map(|nth| format!("~sess-{nth}")).collect()
}

/// The partition of a session.
pub(crate) fn session(session_id: &str) -> String {
    format!("~sess-{}", fnv1a(session_id.as_bytes()) % SESSION_PARTITIONS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn partitions_have_the_documented_forms() {
        assert_eq!(instance("order-1"), "order-1");
        assert_eq!(instance("~sys"), "~~sys");
        assert_eq!(instance("~#1"), "~~#1");
        assert_eq!(instance(&"x".repeat(1_500)).len(), 1_500);
        let hashed = instance(&"x".repeat(1_501));
        assert!(hashed.starts_with("~#") && hashed.len() == 66, "{hashed}");
        assert_eq!(instance(&format!("~{}", "x".repeat(1_499))).len(), 1_501);
        assert_eq!((ready(0).as_str(), work().as_str(), SYSTEM), ("~ready-0", "~work", "~sys"));
        let sessions: std::collections::BTreeSet<String> =
            (0..100).map(|n| session(&format!("s{n}"))).collect();
        assert_eq!(sessions.into_iter().collect::<Vec<_>>(), ["~sess-0", "~sess-1", "~sess-2", "~sess-3"]);
    }

    fn ids() -> impl Strategy<Value = String> {
        let stored = [SYSTEM.to_string(), ready(0), work(), session("s"), "~#".to_string()];
        let tricky = proptest::sample::select(stored.to_vec());
        prop_oneof![".{1,20}", "[~#a]{1,4}", tricky, "~{0,1}[ab]{1498,1503}"]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn an_instance_never_shares_a_partition(id in ids(), other in ids()) {
            prop_assert_eq!(instance(&id) == instance(&other), id == other);
            prop_assert!(instance(&id).len() <= 2_048);
            match owner(&instance(&id)) {
                Owner::Instance(decoded) => prop_assert_eq!(decoded, id),
                Owner::LongId => prop_assert!(id.len() > LONGEST_ID),
                Owner::Store => prop_assert!(false, "{} is a partition of the store", id),
            }
        }

        #[test]
        fn partitions_of_the_store_belong_to_the_store(tag in ".{0,20}", n in 0..9_u32) {
            for partition in [SYSTEM.to_string(), ready(n), work(), session(&tag)] {
                prop_assert_eq!(owner(&partition), Owner::Store);
            }
        }
    }
}
