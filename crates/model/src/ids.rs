//! Instance ids: reserved forms, and the rules for ids that stores accept.

use crate::limits::{MAX_GENERATED_INSTANCE_ID_BYTES, MAX_INSTANCE_ID_BYTES};
use std::fmt;

/// Execution id of an instance's first execution.
pub const INITIAL_EXECUTION_ID: u64 = 1;
/// Event id of an execution's first event.
pub const INITIAL_EVENT_ID: u64 = 1;
/// Marks a child id that the runtime generated.
pub const SUB_ORCH_AUTO_PREFIX: &str = "sub::";

/// True for a child id that the runtime generated and that still lacks its parent's prefix.
pub fn is_auto_generated_sub_orch_id(instance: &str) -> bool {
    instance.starts_with(SUB_ORCH_AUTO_PREFIX)
}

/// The id under which a child runs: generated ids are prefixed with the parent's, explicit ones stay as they are.
pub fn build_child_instance_id(parent_instance: &str, child_instance: &str) -> String {
    if is_auto_generated_sub_orch_id(child_instance) {
        format!("{parent_instance}::{child_instance}")
    } else {
        child_instance.to_string()
    }
}

/// The error for a refused instance id. The message names the id (shortened) and the rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvalidInstanceId {
    /// The id has no characters.
    Empty,
    /// The id is longer than the limit for its kind.
    TooLong {
        /// The first characters of the id.
        shown: String,
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The id holds a control character.
    ControlCharacter {
        /// The id with the character escaped, shortened.
        shown: String,
        /// Byte offset of the character.
        at: usize,
    },
}

impl fmt::Display for InvalidInstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "instance id is empty: give it at least one character"),
            Self::TooLong { shown, bytes, limit } => {
                write!(
                    f,
                    "instance id '{shown}...' has {bytes} bytes, the limit is {limit}: use a shorter id"
                )
            }
            Self::ControlCharacter { shown, at } => {
                write!(f, "instance id '{shown}' has a control character at byte {at}: remove it")
            }
        }
    }
}

impl std::error::Error for InvalidInstanceId {}

/// Accepts 1 to 512 bytes of UTF-8 without control characters; ids of generated children, which contain their
/// ancestors' ids, may have up to 4 KiB.
pub fn check_instance_id(instance: &str) -> Result<(), InvalidInstanceId> {
    if instance.is_empty() {
        return Err(InvalidInstanceId::Empty);
    }
    let generated = is_auto_generated_sub_orch_id(instance) || instance.contains("::sub::");
    let limit = if generated { MAX_GENERATED_INSTANCE_ID_BYTES } else { MAX_INSTANCE_ID_BYTES };
    if instance.len() > limit {
        return Err(InvalidInstanceId::TooLong { shown: shorten(instance), bytes: instance.len(), limit });
    }
    match instance.char_indices().find(|(_, c)| c.is_control()) {
        Some((at, _)) => Err(InvalidInstanceId::ControlCharacter { shown: shorten(instance), at }),
        None => Ok(()),
    }
}

fn shorten(instance: &str) -> String {
    instance.chars().take(40).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_ids_are_accepted_by_length_and_characters() {
        let long_child = format!("p::sub::2{}", "x".repeat(4_000));
        let cases: [(&str, bool); 10] = [
            ("a", true),
            ("order-1", true),
            ("naïve 🦀 id", true),
            (&"x".repeat(512), true),
            (&"x".repeat(513), false),
            (&long_child, true),
            (&"x".repeat(1 << 20), false),
            ("", false),
            ("a\0b", false),
            ("line\nbreak", false),
        ];
        for (id, accepted) in cases {
            assert_eq!(check_instance_id(id).is_ok(), accepted, "{:.60}", id.escape_debug().to_string());
        }
    }

    #[test]
    fn refused_instance_id_error_names_id_and_rule() {
        let text = |id: &str| check_instance_id(id).unwrap_err().to_string();
        assert_eq!(text(""), "instance id is empty: give it at least one character");
        assert_eq!(text("a\0b"), "instance id 'a\\0b' has a control character at byte 1: remove it");
        assert!(text(&"y".repeat(600)).contains("has 600 bytes, the limit is 512"));
    }

    #[test]
    fn only_generated_child_ids_get_the_parents_prefix() {
        assert_eq!(build_child_instance_id("p", "sub::2"), "p::sub::2");
        assert_eq!(build_child_instance_id("p", "mine"), "mine");
        assert!(!is_auto_generated_sub_orch_id("p::sub::2"));
    }
}
