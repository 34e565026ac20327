//! The replay rules of an execution. The stamp of its first event selects them for the whole execution.
//!
//! | stamp | rules |
//! |---|---|
//! | below 0.1.31, pre-releases of it, or not a version | *legacy*: a dropped wait keeps its place until the end of the turn; then later waits move up |
//! | from 0.1.31 | *immediate*: a dropped wait loses its place at once |
//! | ... with the build `+buffered` | immediate, and a positional event that arrives before its wait is kept for the wait |

use outlast_model::CONTRACT_VERSION;
use semver::{BuildMetadata, Version};

/// The rules for dropped waits and early events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    /// A dropped wait keeps its place until its note is written.
    pub(crate) legacy: bool,
    /// Early positional events are kept.
    pub(crate) buffers_early_signals: bool,
}

const FIRST_IMMEDIATE: Version = Version::new(0, 1, 31);
/// Build metadata. Version comparisons ignore it, so the pin of an execution does not change.
const BUFFERED: &str = "buffered";

impl Rules {
    /// The rules that a stamp selects, and whether the stamp could be read.
    pub(crate) fn of_stamp(stamp: &str) -> (Self, bool) {
        match Version::parse(stamp) {
            Ok(version) => {
                let legacy = version.cmp_precedence(&FIRST_IMMEDIATE).is_lt();
                let buffers_early_signals = !legacy && version.build.as_str() == BUFFERED;
                (Self { legacy, buffers_early_signals }, true)
            }
            Err(_) => (Self { legacy: true, buffers_early_signals: false }, false),
        }
    }
}

/// The contract version that a stamp pins an execution to: without the build metadata, which selects replay rules only.
/// `None` for a stamp that is not a version.
pub(crate) fn pin(stamp: &str) -> Option<Version> {
    let version = Version::parse(stamp).ok()?;
    Some(Version { build: BuildMetadata::EMPTY, ..version })
}

/// The stamp for the first event of a new execution.
pub fn stamp(buffer_early_signals: bool) -> String {
    if buffer_early_signals { format!("{CONTRACT_VERSION}+{BUFFERED}") } else { CONTRACT_VERSION.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pin_leaves_out_build_metadata_and_is_none_for_unreadable_stamp() {
        assert_eq!(pin(&stamp(true)), pin(CONTRACT_VERSION));
        assert_eq!(pin("0.1.31-beta+other").unwrap().to_string(), "0.1.31-beta");
        assert_eq!(pin("yesterday"), None);
    }

    #[test]
    fn stamp_selects_replay_rules() {
        let cases = [
            ("0.1.30", true, false, true),
            ("0.1.31-beta", true, false, true),
            ("0.1.31", false, false, true),
            ("0.1.32", false, false, true),
            ("1.0.0", false, false, true),
            ("0.1.32+buffered", false, true, true),
            ("0.1.32+other", false, false, true),
            ("0.1.30+buffered", true, false, true),
            ("yesterday", true, false, false),
        ];
        for (stamp, legacy, buffers_early_signals, readable) in cases {
            assert_eq!(
                Rules::of_stamp(stamp),
                (Rules { legacy, buffers_early_signals }, readable),
                "{stamp}"
            );
        }
        assert_eq!(Rules::of_stamp(&stamp(true)).0, Rules { legacy: false, buffers_early_signals: true });
        assert_eq!(Rules::of_stamp(&stamp(false)).0, Rules { legacy: false, buffers_early_signals: false });
    }
}
