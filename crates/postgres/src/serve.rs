//! Hands out the results of a committed transaction: replies to callers, and leases to the fetches that they are for.

use crate::PostgresError;
use crate::ask::Ask;
use crate::batch::Batch;
use crate::db::{Result, cell, text, text_option, unsigned};
use crate::functions::{self, fetch_activities, fetch_turns};
use crate::hand_off::HandOff;
use crate::in_doubt::LeasesInDoubt;
use crate::lanes::{start_giving_back, start_setting_aside};
use crate::leased::{Deliveries, LeaseSender, Leases, RawActivity, RawMessage, RawTurn};
use crate::parked::{Fetch, GroupDone};
use crate::reply::{Replied, reply_to_callers};
use crate::row::Row;
use crate::scheduler::{
    ActivityGroupDone, ActivityHandOffDone, HandOffDone, LaneDone, TurnGroupDone, TurnHandOffDone,
};
use crate::shared::Shared;
use crate::steps::Step;
use crate::transaction::{
    ActivityHandOffs, ActivityPoll, Done, Transaction, TurnHandOffs, TurnPoll, fetch_of_each_lease,
};
use outlast_provider::WorkNotes;
use outlast_provider_kit::queue::PerQueue;
use outlast_provider_kit::{ActivityRow, MessageRow, ResolvedTurn};
use std::collections::HashMap;
use std::sync::Arc;

/// Hands out the results of a committed transaction: replies to callers, leases to fetches.
pub(crate) fn finish(shared: &Arc<Shared>, transaction: Transaction, done: &Done, leases: LeasesInDoubt) {
    let leases = Undelivered { shared, leases };
    let Transaction { batch, polls, hand_offs, frees, puts_off, asks_next_due, .. } = transaction;
    shared.put_off(puts_off);
    shared.db.counters.calls.add(batch.len());
    shared.fault(Step::Answer, || batch.all_subjects());
    let ends_turns = batch.ends_turns();
    let (mut turns, mut activities) = (Deliveries::default(), Deliveries::default());
    let hand_offs = PerQueue {
        turns: handed_off_turns(shared, hand_offs.turns, &batch, handed_off_turn_rows(done), &mut turns),
        activities: handed_off_activities(
            shared,
            hand_offs.activities,
            &batch,
            handed_off_activity_rows(done),
            &mut activities,
        ),
    };
    let Replied { has_more_messages, visible_in_ms } = reply_to_callers(shared, batch, done);
    shared.fault(Step::Serve, Vec::new);
    let changes = PerQueue { turns: polls.turns.changes, activities: polls.activities.changes };
    let polls = PerQueue {
        turns: polled_turns(shared, polls.turns, &done.turns, &mut turns),
        activities: polled_activities(shared, polls.activities, &done.activities, &mut activities),
    };
    // From here on the deliveries guard each lease until its caller has it.
    leases.are_delivered();
    let done = LaneDone {
        polls,
        hand_offs,
        changes,
        frees,
        visible_in_ms,
        has_more_messages,
        ends_turns,
        asked_next_due: asks_next_due,
    };
    let unserved = shared.update(|scheduler, now| scheduler.on_lane_done(done, now));
    turns.send();
    activities.send();
    unserved.turns.into_iter().for_each(reply_nothing);
    unserved.activities.into_iter().for_each(reply_nothing);
}

/// Sends an empty reply to the caller of a fetch.
fn reply_nothing<A, L: Leases>(fetch: Fetch<A, LeaseSender<L>>) {
    drop(fetch.caller.send(Ok(None)));
}

/// Leases that a transaction has taken. If a panic keeps them from their fetches, they are given back.
struct Undelivered<'a> {
    shared: &'a Arc<Shared>,
    leases: LeasesInDoubt,
}

impl Undelivered<'_> {
    fn are_delivered(mut self) {
        self.leases.secrets.clear();
    }
}

impl Drop for Undelivered<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            start_giving_back(self.shared, std::mem::take(&mut self.leases));
        }
    }
}

/// Matches the turns that a poll leased with its fetches, in the order in which the fetches came.
fn polled_turns(
    shared: &Arc<Shared>,
    poll: TurnPoll,
    answers: &[Vec<Row>],
    deliveries: &mut Deliveries<RawTurn>,
) -> Vec<TurnGroupDone> {
    let group_done = |(fetches, rows): (Vec<_>, &Vec<Row>)| {
        let lock_ms = group_lock_ms(&fetches);
        let (mut leased, mut due_ms) = (Vec::new(), None);
        for row in rows {
            match raw_turn(row) {
                Ok(Some(turn)) => leased.push(turn),
                Ok(None) => {
                    due_ms = due_in_ms(row, fetch_turns::NOW, fetch_turns::NEXT_DUE);
                    if let Ok(Some(true)) = cell(row, fetch_turns::HAS_SKIPPED_MANY) {
                        start_setting_aside(shared);
                    }
                }
                Err(error) => {
                    tracing::error!(target: "duroxide::providers::postgres", %error, "a turn cannot be read")
                }
            }
        }
        shared.db.counters.polls.add(1);
        shared.db.counters.fetched.add(leased.len());
        let is_served = !leased.is_empty();
        let leased = leased.into_iter().map(Some).chain(std::iter::repeat_with(|| None));
        let unserved = deliver(shared, fetches.into_iter().zip(leased), deliveries);
        GroupDone { unserved, is_served, lock_ms, due_ms, no_sessions: None }
    };
    poll.groups.into_iter().zip(answers).map(group_done).collect()
}

/// Matches the activities that a poll leased with its fetches, by the number of each lease.
fn polled_activities(
    shared: &Arc<Shared>,
    poll: ActivityPoll,
    answers: &[Vec<Row>],
    deliveries: &mut Deliveries<Vec<RawActivity>>,
) -> Vec<ActivityGroupDone> {
    let group_done = |(fetches, rows): (Vec<_>, &Vec<Row>)| {
        let lock_ms = group_lock_ms(&fetches);
        let fetch_of_lease: Vec<usize> = fetch_of_each_lease(&fetches).collect();
        let (mut due_ms, mut no_sessions) = (None, false);
        let mut leased: Vec<Vec<RawActivity>> = fetches.iter().map(|_| Vec::new()).collect();
        for row in rows {
            match raw_activity(row) {
                Ok(Some((nth, activity))) => {
                    shared.db.counters.fetched.add(1);
                    let fetch = fetch_of_lease.get(nth).and_then(|fetch| leased.get_mut(*fetch));
                    if let Some(fetch) = fetch {
                        fetch.push(activity);
                    }
                }
                Ok(None) => {
                    due_ms = due_in_ms(row, fetch_activities::NOW, fetch_activities::NEXT_DUE);
                    let has_sessions = cell::<Option<bool>>(row, fetch_activities::HAS_SESSIONS);
                    no_sessions = !has_sessions.ok().flatten().unwrap_or(true);
                }
                Err(error) => {
                    tracing::error!(target: "duroxide::providers::postgres", %error, "an activity cannot be read")
                }
            }
        }
        shared.db.counters.polls.add(1);
        let is_served = leased.iter().any(|activities| !activities.is_empty());
        let leased = leased.into_iter().map(non_empty);
        let unserved = deliver(shared, fetches.into_iter().zip(leased), deliveries);
        GroupDone { unserved, is_served, lock_ms, due_ms, no_sessions: Some(no_sessions) }
    };
    poll.groups.into_iter().zip(answers).map(group_done).collect()
}

fn group_lock_ms<A: Ask, C>(fetches: &[Fetch<A, C>]) -> u64 {
    fetches.first().map_or(0, |fetch| fetch.ask.lock_ms())
}

fn non_empty(activities: Vec<RawActivity>) -> Option<Vec<RawActivity>> {
    Some(activities).filter(|activities| !activities.is_empty())
}

/// Delivers leases to their fetches; returns the fetches without leases.
fn deliver<A, L: Leases>(
    shared: &Arc<Shared>,
    fetches: impl Iterator<Item = (Fetch<A, LeaseSender<L>>, Option<L>)>,
    deliveries: &mut Deliveries<L>,
) -> Vec<Fetch<A, LeaseSender<L>>> {
    let mut unserved = Vec::new();
    for (fetch, leases) in fetches {
        match leases {
            Some(leases) => deliveries.add(fetch.caller, leases, shared),
            None => unserved.push(fetch),
        }
    }
    unserved
}

/// Matches turns that were stored with a lease with the fetches of their hand-offs.
fn handed_off_turns(
    shared: &Arc<Shared>,
    hand_offs: TurnHandOffs,
    batch: &Batch,
    answers: [HandOffRows<'_>; 2],
    deliveries: &mut Deliveries<RawTurn>,
) -> Vec<TurnHandOffDone> {
    let mut leased: Vec<Option<RawTurn>> = hand_offs.fetches.iter().map(|_| None).collect();
    let stored: HashMap<_, _> = answers.into_iter().flat_map(HandOffRows::by_secret).collect();
    let beginnings = batch.beginnings();
    for hand_off in &hand_offs.hand_offs {
        if let (Some((rows, row)), Some(begins)) =
            (stored.get(hand_off.secret.as_slice()), beginnings[hand_off.item])
        {
            leased[hand_off.fetch] = readable(rows.turn(row, hand_off, begins));
        }
    }
    hand_offs_done(shared, hand_offs.fetches, leased, deliveries)
}

/// Matches activities that were stored with a lease with the fetches of their hand-offs.
fn handed_off_activities(
    shared: &Arc<Shared>,
    hand_offs: ActivityHandOffs,
    batch: &Batch,
    commits: HandOffRows<'_>,
    deliveries: &mut Deliveries<Vec<RawActivity>>,
) -> Vec<ActivityHandOffDone> {
    let mut leased: Vec<Vec<RawActivity>> = hand_offs.fetches.iter().map(|_| Vec::new()).collect();
    let stored: HashMap<_, _> = commits.by_secret().collect();
    let scheduled: Vec<&ActivityRow> = batch.scheduled().collect();
    for hand_off in &hand_offs.hand_offs {
        if let Some((rows, row)) = stored.get(hand_off.secret.as_slice()) {
            let activity = rows.activity(row, hand_off, scheduled[hand_off.item]);
            leased[hand_off.fetch].extend(readable(activity));
        }
    }
    let leased = leased.into_iter().map(non_empty).collect();
    hand_offs_done(shared, hand_offs.fetches, leased, deliveries)
}

/// Delivers the leases of hand-offs to their fetches. A fetch without a lease is a refused hand-off.
fn hand_offs_done<A: Ask, L: Leases>(
    shared: &Arc<Shared>,
    fetches: Vec<Fetch<A, LeaseSender<L>>>,
    leased: Vec<Option<L>>,
    deliveries: &mut Deliveries<L>,
) -> Vec<HandOffDone<A, LeaseSender<L>>> {
    let done = |(fetch, leases): (Fetch<A, LeaseSender<L>>, Option<L>)| match leases {
        Some(leases) => {
            let count = leases.leases().len();
            shared.db.counters.fetched.add(count);
            shared.db.counters.handed_off.add(count);
            deliveries.add(fetch.caller, leases, shared);
            HandOffDone::Served { lock_ms: fetch.ask.lock_ms() }
        }
        None => HandOffDone::Refused(fetch),
    };
    fetches.into_iter().zip(leased).map(done).collect()
}

/// The rows of commits that hold handed-off activities.
fn handed_off_activity_rows(done: &Done) -> HandOffRows<'_> {
    use functions::commit::{ACTIVITY_ID, AT, NAME, SECRET, VERSION};
    let orchestration = Some((NAME, VERSION));
    let columns = HandOffColumns { now: AT, id: ACTIVITY_ID, secret: SECRET, orchestration };
    HandOffRows { rows: &done.commits, columns }
}

/// The rows of messages and starts that hold handed-off turns.
fn handed_off_turn_rows(done: &Done) -> [HandOffRows<'_>; 2] {
    use functions::{enqueue_messages, start};
    let columns = |now, id, secret| HandOffColumns { now, id, secret, orchestration: None };
    let of_message = columns(enqueue_messages::AT, enqueue_messages::MESSAGE_ID, enqueue_messages::SECRET);
    let of_start = columns(start::AT, start::MESSAGE_ID, start::SECRET);
    [
        HandOffRows { rows: &done.messages, columns: of_message },
        HandOffRows { rows: &done.starts, columns: of_start },
    ]
}

/// Rows of an answer that hold hand-offs, and their columns.
#[derive(Clone, Copy)]
struct HandOffRows<'a> {
    rows: &'a [Row],
    columns: HandOffColumns,
}

/// The columns of a row that holds a hand-off.
#[derive(Clone, Copy)]
struct HandOffColumns {
    /// The time of the store.
    now: usize,
    /// The id of the message or activity.
    id: usize,
    secret: usize,
    /// Name and version of the orchestration that scheduled an activity.
    orchestration: Option<(usize, usize)>,
}

impl<'a> HandOffRows<'a> {
    fn by_secret(self) -> impl Iterator<Item = (&'a [u8], (Self, &'a Row))> {
        let secret = move |row| cell::<Option<&[u8]>>(row, self.columns.secret).ok().flatten();
        self.rows.iter().filter_map(move |row| Some((secret(row)?, (self, row))))
    }

    fn turn(self, row: &Row, hand_off: &HandOff, begins: &MessageRow) -> Result<RawTurn> {
        let now = unsigned(row, self.columns.now)?;
        let message = RawMessage {
            id: cell(row, self.columns.id)?,
            text: begins.work_item.clone(),
            available_at: now,
            attempts: 1,
        };
        Ok(RawTurn {
            secret: hand_off.secret,
            instance: begins.instance_id.clone(),
            row: None,
            created_at: None,
            has_ended: false,
            has_history: false,
            start_due: None,
            now,
            is_partial: false,
            left_out_bytes: None,
            messages: vec![message],
        })
    }

    fn activity(self, row: &Row, hand_off: &HandOff, scheduled: &ActivityRow) -> Result<RawActivity> {
        let orchestration = match self.columns.orchestration {
            Some((name, version)) => text_option(row, name)?.zip(text_option(row, version)?),
            None => None,
        };
        Ok(RawActivity {
            secret: hand_off.secret,
            id: cell(row, self.columns.id)?,
            text: scheduled.work_item.clone(),
            instance: scheduled.instance_id.clone(),
            attempts: 1,
            notes: WorkNotes::default(),
            orchestration,
            now: unsigned(row, self.columns.now)?,
        })
    }
}

/// A lease that cannot be read is delivered again after it expires.
fn readable<T>(read: Result<T>) -> Option<T> {
    let log = |error: &PostgresError| tracing::error!(target: "duroxide::providers::postgres", %error, "a lease cannot be read");
    read.inspect_err(log).ok()
}

/// The milliseconds until an item becomes fetchable, from the row without a lease.
fn due_in_ms(row: &Row, now: usize, next_due: usize) -> Option<u64> {
    let next = cell::<Option<i64>>(row, next_due).ok().flatten()?;
    Some(u64::try_from(next).unwrap_or(0).saturating_sub(unsigned(row, now).unwrap_or(0)))
}

/// A leased turn; `None` for the row without a lease.
fn raw_turn(row: &Row) -> Result<Option<RawTurn>> {
    use fetch_turns::*;
    let Some(instance) = text_option(row, INSTANCE)? else { return Ok(None) };
    let secret: &[u8] = cell(row, SECRET)?;
    let known = match text_option(row, NAME)? {
        Some(orchestration_name) => {
            let version = text_option(row, VERSION)?.unwrap_or_else(|| "unknown".to_string());
            let last_event = cell::<Option<i64>>(row, LAST_EVENT)?.and_then(|id| u64::try_from(id).ok());
            let (execution_id, last_event_id) = (unsigned(row, EXECUTION)?, Some(last_event.unwrap_or(0)));
            Some(ResolvedTurn { orchestration_name, version, execution_id, last_event_id })
        }
        None => None,
    };
    let time = |column| {
        Ok::<_, PostgresError>(cell::<Option<i64>>(row, column)?.and_then(|at| u64::try_from(at).ok()))
    };
    let ids: Vec<i64> = cell(row, MESSAGE_IDS)?;
    let texts: Vec<Option<String>> = cell(row, MESSAGES)?;
    let left_out_bytes =
        cell::<Option<i64>>(row, LEFT_OUT_BYTES)?.map(|bytes| usize::try_from(bytes).unwrap_or(0));
    let available: Vec<i64> = cell(row, AVAILABLE_AT)?;
    let attempts: Vec<i32> = cell(row, ATTEMPTS)?;
    let messages = ids.into_iter().zip(texts).zip(available.into_iter().zip(attempts));
    Ok(Some(RawTurn {
        secret: secret.try_into().unwrap_or_default(),
        instance,
        row: known,
        created_at: time(CREATED_AT)?,
        has_ended: cell::<Option<bool>>(row, HAS_ENDED)?.unwrap_or(false),
        has_history: cell(row, HAS_HISTORY)?,
        start_due: time(START_DUE)?,
        now: unsigned(row, NOW)?,
        is_partial: cell::<Option<bool>>(row, IS_PARTIAL)?.unwrap_or(false),
        left_out_bytes,
        messages: messages
            .map(|((id, text), (available_at, attempts))| RawMessage {
                id,
                text: text.unwrap_or_default(),
                available_at: u64::try_from(available_at).unwrap_or(0),
                attempts: u32::try_from(attempts).unwrap_or(0),
            })
            .collect(),
    }))
}

/// A leased activity and the number of its lease; `None` for the row without a lease.
fn raw_activity(row: &Row) -> Result<Option<(usize, RawActivity)>> {
    use fetch_activities::*;
    let Some(nth) = cell::<Option<i32>>(row, NTH)? else { return Ok(None) };
    let secret: &[u8] = cell(row, SECRET)?;
    let activity = RawActivity {
        secret: secret.try_into().unwrap_or_default(),
        id: cell(row, ID)?,
        text: cell(row, ITEM)?,
        instance: text(row, INSTANCE)?,
        attempts: u32::try_from(cell::<i32>(row, ATTEMPTS)?).unwrap_or(0),
        notes: WorkNotes {
            failures: u32::try_from(cell::<i32>(row, FAILURES)?).unwrap_or(0),
            last_error: text_option(row, LAST_ERROR)?,
        },
        orchestration: match text_option(row, NAME)? {
            Some(name) => Some((name, text(row, VERSION)?)),
            None => None,
        },
        now: unsigned(row, NOW)?,
    };
    Ok(Some((usize::try_from(nth - 1).unwrap_or(0), activity)))
}
