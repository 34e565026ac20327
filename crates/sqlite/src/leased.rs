//! Leases in transit from the writer to the caller of a fetch, and back.

use crate::command::{Call, CallInfo, Handle, PendingCall};
use crate::db::column;
use crate::{activity, commit};
use outlast_provider::{ClassifiedError, FetchedTurn, FetchedWork, KvEntry};
use outlast_provider_kit::leased::TakesBack;
use outlast_provider_kit::token::{self, Secret};
use outlast_provider_kit::{LeasedTurn, TurnAtFetch, rows};
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;
use tokio::sync::oneshot;

/// The answer to a fetch: leases, `None` if there are none, or an error.
pub(crate) type LeaseAnswer<L> = Result<Option<Guarded<L>>, ClassifiedError>;

/// Answers the caller of a fetch.
pub(crate) type LeaseSender<L> = oneshot::Sender<LeaseAnswer<L>>;

/// The queue of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseKind {
    Turn,
    Activity,
}

/// A lease to give back.
pub(crate) struct Abandon {
    pub(crate) token: String,
    /// How long no fetch takes the item.
    pub(crate) delay: Option<Duration>,
    /// Whether the delivery is not counted.
    pub(crate) ignore_attempt: bool,
}

/// A call that gives a lease back.
pub(crate) fn release(kind: LeaseKind, token: String) -> Box<dyn Call> {
    let abandon = match kind {
        LeaseKind::Turn => commit::abandon,
        LeaseKind::Activity => activity::abandon,
    };
    let abandoned = Abandon { token, delay: None, ignore_attempt: true };
    Box::new(PendingCall::new(CallInfo::of("release"), abandoned, abandon, |_, ()| {}, None).0)
}

/// A lease to extend.
pub(crate) struct Renew {
    pub(crate) token: String,
    pub(crate) extend_for: Duration,
}

/// Facts that the fetch read from the rows of the instance, carried in the token. No other caller changes these rows under the
/// lease, so the commit does not read them again.
///
/// The key of the token has the text `k512-1700.` before the text of [`TurnAtFetch`]: `k` if the current execution changed keys,
/// the bytes in `message_texts`, and the end of the covered messages if the fetch left messages behind.
#[derive(Clone, Copy)]
pub(crate) struct TurnFacts<'a> {
    /// Whether the current execution changed keys.
    pub(crate) kv_changed: bool,
    /// The bytes of message texts in `message_texts`.
    pub(crate) external_bytes: usize,
    /// When the last covered message became available, if the fetch left messages behind.
    pub(crate) covered_until: Option<u64>,
    pub(crate) at_fetch: TurnAtFetch<&'a str>,
}

impl<'a> TurnFacts<'a> {
    /// Parses a token, with the secret that makes it valid; `None` for a text that is not a token of this store.
    pub(crate) fn of(token: &'a str) -> Option<(Self, Secret)> {
        let (secret, key) = token::parse(token)?;
        let (own, at_fetch) = key.split_once('.')?;
        let (kv_changed, external_bytes) = match own.strip_prefix('k') {
            Some(bytes) => (true, bytes),
            None => (false, own),
        };
        let (external_bytes, covered_until) = match external_bytes.split_once('-') {
            Some((bytes, until)) => (bytes, Some(until.parse().ok()?)),
            None => (external_bytes, None),
        };
        let external_bytes = external_bytes.parse().ok()?;
        let at_fetch = TurnAtFetch::parse(at_fetch)?;
        Some((Self { kv_changed, external_bytes, covered_until, at_fetch }, secret))
    }

    /// No covered message became available after this time, so a statement need not read the messages behind them.
    pub(crate) fn covered_until(&self) -> i64 {
        self.covered_until.map_or(i64::MAX, column)
    }
}

impl fmt::Display for TurnFacts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kv_changed = if self.kv_changed { "k" } else { "" };
        write!(f, "{kv_changed}{}", self.external_bytes)?;
        if let Some(until) = self.covered_until {
            write!(f, "-{until}")?;
        }
        write!(f, ".{}", self.at_fetch)
    }
}

/// The instance that a turn's token locks.
pub(crate) fn instance_of(token: &str) -> Option<&str> {
    TurnFacts::of(token).map(|(facts, _)| facts.at_fetch.instance)
}

/// The bytes of message texts that the commit of a turn deletes.
pub(crate) fn bytes_to_delete(token: &str) -> usize {
    TurnFacts::of(token).map_or(0, |(facts, _)| facts.external_bytes)
}

/// A leased turn as the writer hands it out; its caller decodes the history, so that the writer need not.
#[derive(Debug)]
pub(crate) struct RawTurn {
    pub(crate) turn: LeasedTurn,
    /// The texts of the events and the key-value snapshot, if the fetch asked for the history.
    pub(crate) replay: Option<(Vec<String>, HashMap<String, KvEntry>)>,
    /// The reason why a row that the turn needs cannot be read.
    pub(crate) damage: Option<String>,
}

impl RawTurn {
    /// The turn with its history decoded.
    pub(crate) fn into_fetched(self) -> FetchedTurn {
        let Self { turn, replay, damage } = self;
        let loaded = replay.map(|(texts, kv_snapshot)| {
            let texts = texts.iter().map(String::as_str);
            rows::decode_turn(&turn.instance, turn.resolved.execution_id, texts, kv_snapshot)
        });
        turn.into_fetched(loaded, damage)
    }
}

/// A value that holds leases.
pub(crate) trait Leases: Send {
    const KIND: LeaseKind;
    fn tokens(&self) -> Vec<String>;
}

impl Leases for RawTurn {
    const KIND: LeaseKind = LeaseKind::Turn;
    fn tokens(&self) -> Vec<String> {
        vec![self.turn.lock_token.clone()]
    }
}

impl Leases for Vec<FetchedWork> {
    const KIND: LeaseKind = LeaseKind::Activity;
    fn tokens(&self) -> Vec<String> {
        self.iter().map(|activity| activity.lock_token.clone()).collect()
    }
}

/// Leases in transit to a caller; without a caller, the writer takes them back.
pub(crate) type Guarded<L> = outlast_provider_kit::Guarded<L, Handle>;

impl<L: Leases> TakesBack<L> for Handle {
    fn take_back(&self, leases: L) {
        for token in leases.tokens() {
            self.release(L::KIND, token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_provider::OsEntropy;
    use outlast_provider_kit::Token;

    #[test]
    fn facts_round_trip_through_the_token() {
        for (kv_changed, external_bytes, covered_until) in
            [(false, 0, None), (false, 512, Some(1_700)), (true, 0, Some(0)), (true, 70_000, None)]
        {
            let (current_execution, messages, is_partial) = (3, 7, true);
            let at_fetch = TurnAtFetch { current_execution, messages, is_partial, instance: "k1.2.a" };
            let token =
                Token::mint(&OsEntropy, TurnFacts { kv_changed, external_bytes, covered_until, at_fetch });
            let (facts, secret) = TurnFacts::of(&token.text).unwrap();
            assert_eq!((facts.kv_changed, facts.external_bytes), (kv_changed, external_bytes));
            assert_eq!(facts.covered_until, covered_until);
            assert_eq!((facts.at_fetch, secret), (at_fetch, token.secret));
        }
    }
}
