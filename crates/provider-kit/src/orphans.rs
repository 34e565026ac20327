//! Decides about the leased messages of an instance without a row: a turn, or the fate of each message. Orphans are messages for
//! an instance that does not exist (yet), other than queue messages alone.

use crate::Context;
use outlast_model::defect::{self, Defect};

/// The shortest and the longest delay of orphans; between them the delay is the age of the oldest message.
const RETRY_MS: (u64, u64) = (1_000, 60_000);

/// The default time after which an orphan becomes a dead letter.
pub const DEFAULT_LIFE_MS: u64 = 24 * 60 * 60 * 1_000;

/// The time until which a batch of orphans is delayed. It depends on the age of the batch, so the store keeps no count. All messages
/// of a batch get the same time: a queue message that became visible alone would be dropped.
pub fn retry_at(oldest_available_at: u64, now: u64) -> u64 {
    now.saturating_add(now.saturating_sub(oldest_available_at).clamp(RETRY_MS.0, RETRY_MS.1))
}

/// Whether an orphan has reached its age limit and becomes a dead letter.
pub fn has_expired(available_at: u64, now: u64, life_ms: u64) -> bool {
    now.saturating_sub(available_at) >= life_ms
}

/// The reason that the dead letter of an orphan holds.
pub fn reason(instance: &str, life_ms: u64) -> String {
    format!("instance '{instance}' did not start within {} s", life_ms / 1_000)
}

/// The leased messages of an instance without a row.
#[derive(Debug, Clone, Copy)]
pub struct RowlessBatch<'a> {
    /// The instance.
    pub instance: &'a str,
    /// The time at which each message became visible, in the order of the messages.
    pub available_at: &'a [u64],
    /// Whether the instance has visible messages that the lease does not cover.
    pub is_partial: bool,
    /// The store's time.
    pub now: u64,
    /// The age at which an orphan becomes a dead letter.
    pub orphan_life_ms: u64,
}

/// The decision about the messages of an instance without a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rowless {
    /// The messages make a turn of this execution.
    Turn {
        /// The orchestration.
        name: String,
        /// The version of the orchestration.
        version: String,
        /// The execution.
        execution_id: u64,
        /// Whether the execution has stored history.
        has_history: bool,
    },
    /// The store drops all messages.
    Drop,
    /// The messages make no turn yet.
    Delay {
        /// The time at which delayed messages become visible. Messages that the lease does not cover wait until then too, so that
        /// none is delivered before the delayed ones.
        until: u64,
        /// The fate of each message, in the order of the messages.
        fates: Vec<Fate>,
    },
}

/// The fate of a message that makes no turn yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// The store delays the message.
    Delayed,
    /// The store replaces the message by a dead letter with this reason.
    DeadLetter(String),
}

/// Decides about a batch whose messages were resolved to `context`. `start_due` reads the time at which a delayed start of the
/// instance becomes visible; it is called only if the messages make no turn.
pub fn decide<E>(
    context: Context,
    batch: &RowlessBatch<'_>,
    start_due: impl FnOnce() -> Result<Option<u64>, E>,
) -> Result<Rowless, E> {
    let is_droppable = match context {
        Context::Known { name, version, execution_id, has_history } => {
            return Ok(Rowless::Turn { name, version, execution_id, has_history });
        }
        // A message that the lease does not cover may be a control message, for which the queue messages are kept.
        Context::QueueOrphan => !batch.is_partial,
        Context::ControlOrphan => false,
    };
    // The start of the instance is delayed or was given back: the messages are delivered together with it, in order.
    if let Some(due) = start_due()?.filter(|_| !defect::is_on(Defect::EarlyMessageDropped)) {
        // The start is not visible now, so the next delivery is later than now.
        let until = due.max(batch.now.saturating_add(1));
        return Ok(Rowless::Delay { until, fates: vec![Fate::Delayed; batch.available_at.len()] });
    }
    if is_droppable {
        return Ok(Rowless::Drop);
    }
    let oldest = batch.available_at.iter().copied().min().unwrap_or(batch.now);
    let fate = |available_at: &u64| match has_expired(*available_at, batch.now, batch.orphan_life_ms) {
        true => Fate::DeadLetter(reason(batch.instance, batch.orphan_life_ms)),
        false => Fate::Delayed,
    };
    let fates = batch.available_at.iter().map(fate).collect();
    Ok(Rowless::Delay { until: retry_at(oldest, batch.now), fates })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    const NOW: u64 = 100_000;
    const LIFE: u64 = 50_000;

    fn decided(context: Context, is_partial: bool, start_due: Option<u64>, available_at: &[u64]) -> Rowless {
        let batch = RowlessBatch { instance: "i", available_at, is_partial, now: NOW, orphan_life_ms: LIFE };
        let Ok(decision) = decide(context, &batch, || Ok::<_, Infallible>(start_due));
        decision
    }

    #[test]
    fn messages_without_a_turn_wait_for_their_start_or_are_dropped_or_delayed() {
        use Context::{ControlOrphan, QueueOrphan};
        const DELAYED: bool = false;
        const DEAD: bool = true;
        let delayed = |until, fates: &[bool]| {
            let dead_letter = || Fate::DeadLetter("instance 'i' did not start within 50 s".to_string());
            let fate = |is_dead: &bool| if *is_dead { dead_letter() } else { Fate::Delayed };
            Rowless::Delay { until, fates: fates.iter().map(fate).collect() }
        };
        let (young, expired) = (NOW - 5_000, NOW - LIFE);
        type Case<'a> = (Context, bool, Option<u64>, &'a [u64], Rowless);
        let cases: [Case<'_>; 10] = [
            // A delayed start: all messages wait for it, whatever their age.
            (QueueOrphan, false, Some(NOW + 9), &[young], delayed(NOW + 9, &[DELAYED])),
            (ControlOrphan, true, Some(NOW + 9), &[expired], delayed(NOW + 9, &[DELAYED])),
            // A start that was given back is due already: not before the next millisecond.
            (ControlOrphan, false, Some(NOW), &[young], delayed(NOW + 1, &[DELAYED])),
            (ControlOrphan, false, Some(3), &[young], delayed(NOW + 1, &[DELAYED])),
            // No start: queue messages are dropped, unless the lease does not cover all messages.
            (QueueOrphan, false, None, &[young, expired], Rowless::Drop),
            (QueueOrphan, true, None, &[young], delayed(NOW + 5_000, &[DELAYED])),
            // No start: the delay is the age of the oldest message.
            (ControlOrphan, false, None, &[NOW, young], delayed(NOW + 5_000, &[DELAYED, DELAYED])),
            (ControlOrphan, true, None, &[NOW], delayed(NOW + 1_000, &[DELAYED])),
            // An orphan at the end of its life becomes a dead letter, the other messages do not.
            (ControlOrphan, false, None, &[expired, young], delayed(NOW + LIFE, &[DEAD, DELAYED])),
            (ControlOrphan, true, None, &[expired], delayed(NOW + LIFE, &[DEAD])),
        ];
        for (context, is_partial, start_due, available_at, expected) in cases {
            let decision = decided(context.clone(), is_partial, start_due, available_at);
            assert_eq!(decision, expected, "{context:?} {is_partial} {start_due:?} {available_at:?}");
        }
    }

    #[test]
    fn start_is_not_looked_up_for_messages_that_make_a_turn() {
        let (name, version) = ("O".to_string(), "1".to_string());
        let context = Context::Known {
            name: name.clone(),
            version: version.clone(),
            execution_id: 2,
            has_history: true,
        };
        let batch = RowlessBatch {
            instance: "i",
            available_at: &[1],
            is_partial: true,
            now: NOW,
            orphan_life_ms: LIFE,
        };
        let decision = decide(context, &batch, || Err("looked up"));
        assert_eq!(decision, Ok(Rowless::Turn { name, version, execution_id: 2, has_history: true }));
        assert_eq!(decide(Context::ControlOrphan, &batch, || Err("looked up")), Err("looked up"));
    }

    #[test]
    fn the_delay_grows_with_age_within_its_bounds() {
        let now = 2_000_000;
        let waits = [0, 5_000, 90_000, 1_999_999].map(|age| retry_at(now - age, now) - now);
        assert_eq!(waits, [1_000, 5_000, 60_000, 60_000]);
    }

    #[test]
    fn the_default_life_is_a_day_and_the_reason_is_in_seconds() {
        assert_eq!(DEFAULT_LIFE_MS, 86_400_000);
        assert_eq!(reason("i", 90_000), "instance 'i' did not start within 90 s");
    }

    #[test]
    fn an_orphan_expires_at_exactly_its_age_limit() {
        assert_eq!([999, 1_000].map(|age| has_expired(5_000 - age, 5_000, 1_000)), [false, true]);
    }
}
