//! Ids of documents. An id never contains text of users: Cosmos DB forbids `/`, `\`, `?` and `#` in ids, and more than 1,023
//! bytes.
//!
//! | `t` | document | id |
//! |---|---|---|
//! | `i` | instance | `i` |
//! | `g` | gate | `g` |
//! | `h` | events of one turn | `h:<execution>:<first event>` |
//! | `m` | message | `m:<message key>` |
//! | `a` | activity; becomes its completion in place | `a:<execution>:<activity>` |
//! | `o` | outbox intent | `o:<rev>:<n>` |
//! | `x` | ended execution, or a large output | `x:<execution>:<write>` |
//! | `k` | key-value pair | `k:<key>` |
//! | `s` | session | `s:<session>` |
//! | `n` | key of a message that was stored once | `n:<key>` |
//! | `u` | record of the audit | `u:<write>` |
//! | `p` | the paused orchestrations | `p` |
//! | `b` | report of a node | `b:<SHA-256 of its id>` |
//!
//! A dead letter (`z`) keeps the id that it had as a message or an activity.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;

/// 128 random bits: the identity of an instance between its creation and its deletion, of a runtime, or of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct Uid(pub(crate) u128);

impl From<Uid> for String {
    fn from(uid: Uid) -> Self {
        uid.to_string()
    }
}

impl TryFrom<String> for Uid {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("'{text:.40}' is no uid: a uid is 32 hexadecimal digits"))
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

impl Uid {
    /// Reads the form that `Display` writes; `None` for every other text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 32 || !text.bytes().all(is_hex) {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(Self)
    }
}

/// The key of a message. Two messages of a partition never have the same key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum MessageKey {
    /// A message from outside of any turn. The key is the id of the write, so that a repeated write is recognised.
    Enqueued(Uid),
    /// A message that a turn sends, to its own instance or through the outbox.
    Sent(SentKey),
}

/// The position of a message among all messages that turns ever send. The uid distinguishes instances that had the same id one
/// after the other. A rev is never used twice, not even after an attempt that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SentKey {
    /// The uid of the sending instance.
    pub(crate) source: Uid,
    /// The rev of the commit that sends it.
    pub(crate) rev: u64,
    /// The position among the messages of that commit.
    pub(crate) nth: u32,
}

impl fmt::Display for MessageKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enqueued(write) => write!(formatter, "{write}"),
            Self::Sent(SentKey { source, rev, nth }) => write!(formatter, "{source}-{rev}-{nth}"),
        }
    }
}

impl MessageKey {
    /// Reads the form that `Display` writes; `None` for every other text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let uid = Uid::parse(parts.next()?)?;
        match (parts.next(), parts.next(), parts.next()) {
            (None, None, None) => Some(Self::Enqueued(uid)),
            (Some(rev), Some(nth), None) => {
                Some(Self::Sent(SentKey { source: uid, rev: decimal(rev)?, nth: decimal(nth)? }))
            }
            _ => None,
        }
    }
}

/// A number without a sign and without leading zeros, so that one number has one form.
fn decimal<N: std::str::FromStr + fmt::Display>(text: &str) -> Option<N> {
    text.parse().ok().filter(|number: &N| number.to_string() == text)
}

/// The id of the document of an instance.
pub(crate) const INSTANCE: &str = "i";

/// The id of the gate of an instance, which every document from outside changes.
pub(crate) const GATE: &str = "g";

/// The events of one turn, or of one part of a large turn.
pub(crate) fn history(execution_id: u64, first_event_id: u64) -> String {
    format!("h:{execution_id}:{first_event_id}")
}

/// A message.
pub(crate) fn message(key: &MessageKey) -> String {
    format!("m:{key}")
}

/// An activity. A second activity with the same ids, which callers outside of a turn may enqueue, has a `copy`.
pub(crate) fn activity(execution_id: u64, activity_id: u64, copy: Option<Uid>) -> String {
    match copy {
        None => format!("a:{execution_id}:{activity_id}"),
        Some(write) => format!("a:{execution_id}:{activity_id}:{write}"),
    }
}

/// An outbox intent.
pub(crate) fn intent(rev: u64, nth: u32) -> String {
    format!("o:{rev}:{nth}")
}

/// An ended execution, or an output that the document of the instance does not hold. Every write creates a document, so that a
/// staged turn does not change a committed one; the document with the highest rev counts.
pub(crate) fn execution(execution_id: u64, write: Uid) -> String {
    format!("x:{execution_id}:{write}")
}

/// A key-value pair.
pub(crate) fn key_value(key: &str) -> String {
    format!("k:{}", encoded(key))
}

/// The key of a message that was stored once.
pub(crate) fn message_key(key: &str) -> String {
    format!("n:{}", encoded(key))
}

/// The text of the key of a message by the id of its document; `None` for a digest.
pub(crate) fn message_key_text(id: &str) -> Option<String> {
    String::from_utf8(from_base64url(id.strip_prefix("n:")?)?).ok()
}

/// A session.
pub(crate) fn session(session_id: &str) -> String {
    format!("s:{}", encoded(session_id))
}

/// Whether the document is a message that came through an outbox. Such a message becomes a tombstone when it is consumed: its
/// intent may be delivered once more, and must then find its key taken.
pub(crate) fn leaves_tombstone(id: &str) -> bool {
    let key = id.strip_prefix("m:").and_then(MessageKey::parse);
    matches!(key, Some(MessageKey::Sent(_)))
}

/// Whether a document may come from outside of the turns of its instance: a message, the key of a message, or an activity with a
/// `copy`.
pub(crate) fn may_arrive(id: &str) -> bool {
    match id.split_once(':') {
        Some(("m" | "n", _)) => true,
        Some(("a", rest)) => rest.split(':').count() > 2,
        _ => false,
    }
}

/// The longest text that is encoded; a longer one is hashed, and its document holds the text.
const LONGEST_ENCODED: usize = 200;

/// A text of a user as part of an id: base64url, or `~` and the SHA-256 of a long text. Base64url has no `~`.
fn encoded(text: &str) -> String {
    match text.len() <= LONGEST_ENCODED {
        true => base64url(text.as_bytes()),
        false => format!("~{}", sha256_hex(text)),
    }
}

/// The queue of an activity, by its tag. The two forms keep an empty tag and no tag apart.
pub(crate) fn queue(tag: Option<&str>) -> String {
    tag.map_or_else(|| "-".to_string(), |tag| format!("+{tag}"))
}

pub(crate) fn sha256_hex(text: &str) -> String {
    use fmt::Write as _;
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// The digits of base64 for URLs.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The bytes of a text of [`base64url`].
fn from_base64url(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for digits in text.as_bytes().chunks(4) {
        let mut group = 0_u32;
        for digit in digits {
            let value = ALPHABET.iter().position(|known| known == digit)?;
            group = group << 6 | u32::try_from(value).ok()?;
        }
        let group = group << (6 * (4 - digits.len()));
        bytes.extend(group.to_be_bytes().iter().skip(1).take(digits.len() - 1));
    }
    Some(bytes)
}

/// Base64 with the alphabet for URLs, without padding (RFC 4648, section 5).
fn base64url(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte));
        let group = group << (8 * (3 - chunk.len()));
        for nth in 0..=chunk.len() {
            let digit = (group >> (18 - 6 * nth)) & 63;
            text.push(char::from(ALPHABET[digit as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const UID: Uid = Uid(0xfeed);

    fn is_legal(id: &str) -> bool {
        let legal = |char: char| char.is_ascii_alphanumeric() || ":-_~".contains(char);
        id.len() <= 1_023 && id.chars().all(legal)
    }

    #[test]
    fn base64url_has_the_vectors_of_its_standard() {
        let vectors = [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
            ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
            ("\u{3e}?\u{3f}~", "Pj8_fg"),
        ];
        for (text, expected) in vectors {
            assert_eq!(base64url(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn a_long_key_is_hashed_and_a_short_one_is_not() {
        assert_eq!(key_value("a/b"), "k:YS9i");
        let longest = "x".repeat(LONGEST_ENCODED);
        assert!(key_value(&longest).starts_with("k:eHh4"));
        let hashed = key_value(&"x".repeat(LONGEST_ENCODED + 1));
        assert!(hashed.starts_with("k:~") && hashed.len() == 67, "{hashed}");
        assert_eq!(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn document_ids_have_the_documented_forms() {
        let sent = MessageKey::Sent(SentKey { source: UID, rev: 7, nth: 2 });
        let uid = "0000000000000000000000000000feed";
        assert_eq!((INSTANCE, GATE), ("i", "g"));
        assert_eq!(history(1, 5), "h:1:5");
        assert_eq!(message(&sent), format!("m:{uid}-7-2"));
        assert_eq!(message(&MessageKey::Enqueued(UID)), format!("m:{uid}"));
        assert_eq!(activity(1, 9, None), "a:1:9");
        assert_eq!(activity(1, 9, Some(UID)), format!("a:1:9:{uid}"));
        assert_eq!((intent(7, 2), execution(3, UID)), ("o:7:2".into(), format!("x:3:{uid}")));
    }

    #[test]
    fn only_messages_of_turns_leave_tombstones() {
        assert!(leaves_tombstone(&message(&MessageKey::Sent(SentKey { source: UID, rev: 7, nth: 2 }))));
        for id in [message(&MessageKey::Enqueued(UID)), activity(1, 2, None), history(1, 1), intent(1, 1)] {
            assert!(!leaves_tombstone(&id), "{id}");
        }
    }

    #[test]
    fn documents_of_turns_have_other_ids_than_activities_from_outside() {
        let enqueued = [message(&MessageKey::Enqueued(UID)), message_key("k"), activity(1, 2, Some(UID))];
        assert!(enqueued.iter().all(|id| may_arrive(id)), "{enqueued:?}");
        for id in [activity(1, 2, None), history(1, 1), intent(1, 1), GATE.to_string(), key_value("k")] {
            assert!(!may_arrive(&id), "{id}");
        }
    }

    #[test]
    fn malformed_message_keys_are_refused() {
        let uid = UID.to_string();
        let malformed = ["", "-", "1", &uid[1..], &uid.to_uppercase()].map(str::to_string);
        let parts = ["-1", "-1-2-3", "-01-2", "-+1-2", "--1", "-1-99999999999"];
        for text in malformed.into_iter().chain(parts.map(|part| format!("{uid}{part}"))) {
            assert_eq!(MessageKey::parse(&text), None, "{text}");
        }
    }

    fn message_keys() -> impl Strategy<Value = MessageKey> {
        let sent = (0..3_u128, 0..30_u64, 0..30_u32);
        let sent =
            sent.prop_map(|(source, rev, nth)| MessageKey::Sent(SentKey { source: Uid(source), rev, nth }));
        prop_oneof![sent, any::<u128>().prop_map(|write| MessageKey::Enqueued(Uid(write)))]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn keys_of_messages_are_read_from_their_ids(key in "\\PC{1,80}") {
            let expected = Some(key.clone()).filter(|key| key.len() <= LONGEST_ENCODED);
            prop_assert_eq!(message_key_text(&message_key(&key)), expected);
        }

        #[test]
        fn message_keys_round_trip(key in message_keys()) {
            prop_assert_eq!(MessageKey::parse(&key.to_string()), Some(key));
        }

        #[test]
        fn different_message_keys_have_different_texts(keys in proptest::collection::vec(message_keys(), 2..40)) {
            let mut seen = BTreeMap::new();
            for key in keys {
                if let Some(other) = seen.insert(key.to_string(), key.clone()) {
                    prop_assert_eq!(other, key);
                }
            }
        }

        #[test]
        fn ids_of_any_text_are_legal_and_differ(one in ".{0,300}", other in ".{0,300}") {
            prop_assert!(is_legal(&key_value(&one)) && is_legal(&session(&one)), "{}", key_value(&one));
            prop_assert_eq!(key_value(&one) == key_value(&other), one == other);
        }
    }
}
