//! Leases without a look: what a transaction brings goes to fetches of this process that have looked in vain, and is stored as
//! theirs. They would find it next, and it would be written twice.

use crate::PostgresError;
use crate::batch::Batch;
use crate::db::{Result, cell, span, text_option, unsigned};
use crate::shared::{Shared, State};
use crate::waiting::{
    ActivityAsk, Ask, Guarded, Leases, Parked, RawActivity, RawMessage, RawTurn, TurnAsk, Waiter,
};
use outlast_provider::Entropy;
use outlast_provider_kit::token::Secret;
use outlast_provider_kit::{ActivityRow, MessageRow};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use tokio::time::Instant;
use tokio_postgres::Row;

/// Who is given what.
pub(crate) struct HandOffs<A: Ask> {
    pub(crate) waiters: Vec<Waiter<A>>,
    pub(crate) hand_offs: Vec<HandOff>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HandOff {
    /// Its place among what could be given.
    what: usize,
    /// The place of who is given it.
    who: usize,
    secret: Secret,
}

impl HandOff {
    pub(crate) fn secret(&self) -> Vec<u8> {
        self.secret.to_vec()
    }
}

impl<A: Ask> Default for HandOffs<A> {
    fn default() -> Self {
        Self { waiters: Vec::new(), hand_offs: Vec::new() }
    }
}

impl<A: Ask> HandOffs<A> {
    /// Secrets and durations of the leases of what has these places, as columns.
    pub(crate) fn columns(&self, places: Range<usize>) -> (Vec<Option<Vec<u8>>>, Vec<i64>) {
        let (mut secrets, mut lock_ms) = (vec![None; places.len()], vec![0; places.len()]);
        for hand_off in self.hand_offs.iter().filter(|hand_off| places.contains(&hand_off.what)) {
            let place = hand_off.what - places.start;
            secrets[place] = Some(hand_off.secret());
            lock_ms[place] = span(self.waiters[hand_off.who].ask.lock_ms());
        }
        (secrets, lock_ms)
    }
}

impl<A: Ask> Parked<A> {
    /// Fetches that have looked in vain for each of these things, unless there is a reason to look again: what came before
    /// goes first.
    fn hand_over<T>(
        &mut self,
        things: impl Iterator<Item = T>,
        may_have: impl Fn(&A, &T) -> bool,
        entropy: &dyn Entropy,
    ) -> HandOffs<A> {
        let mut all = HandOffs::default();
        if self.look {
            return all;
        }
        self.waiters.retain(|waiter| !waiter.reply.is_closed());
        let mut given: Vec<usize> = Vec::new();
        for (what, thing) in things.enumerate() {
            let may_have_more = |who: &usize| {
                given[*who] < all.waiters[*who].ask.wants() && may_have(&all.waiters[*who].ask, &thing)
            };
            let known = (0..given.len()).rev().find(may_have_more);
            let who = known.or_else(|| {
                let waits = |waiter: &Waiter<A>| !waiter.fresh && may_have(&waiter.ask, &thing);
                let place = self.waiters.iter().position(waits)?;
                all.waiters.push(self.waiters.remove(place)?);
                given.push(0);
                Some(given.len() - 1)
            });
            if let Some(who) = who {
                given[who] += 1;
                all.hand_offs.push(HandOff { what, who, secret: entropy.next_u128().to_be_bytes() });
            }
        }
        all
    }
}

impl State {
    /// Turns of instances that begin.
    pub(crate) fn hand_over_turns(&mut self, batch: &Batch, entropy: &dyn Entropy) -> HandOffs<TurnAsk> {
        // What has not begun has no version that somebody could not run.
        self.turns.hand_over(batch.beginnings().into_iter(), |_, row| row.is_some(), entropy)
    }

    /// Activities that turns schedule, and do not cancel at once. Who may have one with a session is for the server to say.
    pub(crate) fn hand_over_activities(
        &mut self,
        batch: &Batch,
        entropy: &dyn Entropy,
    ) -> HandOffs<ActivityAsk> {
        let may_have = |ask: &ActivityAsk, row: &&ActivityRow| {
            row.session_id.is_none() && ask.tags.matches(row.tag.as_deref()) && !batch.cancels(row)
        };
        self.activities.hand_over(batch.scheduled(), may_have, entropy)
    }
}

/// The columns of an answer that tell of leases.
#[derive(Clone, Copy)]
pub(crate) struct Told<'a> {
    pub(crate) rows: &'a [Row],
    /// The one with the time.
    pub(crate) at: usize,
    /// The one with the id of what is leased; its secret follows.
    pub(crate) id: usize,
}

impl<'a> Told<'a> {
    fn by_secret(self) -> impl Iterator<Item = (&'a [u8], (Self, &'a Row))> {
        let secret = move |row| cell::<Option<&[u8]>>(row, self.id + 1).ok().flatten();
        self.rows.iter().filter_map(move |row| Some((secret(row)?, (self, row))))
    }

    fn turn(self, row: &Row, hand_off: &HandOff, begins: &MessageRow) -> Result<RawTurn> {
        let now = unsigned(row, self.at)?;
        let message = RawMessage {
            id: cell(row, self.id)?,
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
            messages: vec![message],
        })
    }

    fn activities(self, row: &Row, hand_off: &HandOff, scheduled: &ActivityRow) -> Result<RawActivity> {
        Ok(RawActivity {
            secret: hand_off.secret,
            id: cell(row, self.id)?,
            text: scheduled.work_item.clone(),
            instance: scheduled.instance_id.clone(),
            attempts: 1,
            orchestration: text_option(row, self.id + 2)?.zip(text_option(row, self.id + 3)?),
            now: unsigned(row, self.at)?,
        })
    }
}

/// The turns that were stored with their leases, for each who was to have one.
pub(crate) fn given_turns(
    handed: &HandOffs<TurnAsk>,
    batch: &Batch,
    [messages, starts]: [Told<'_>; 2],
) -> Vec<Option<RawTurn>> {
    let mut all: Vec<Option<RawTurn>> = handed.waiters.iter().map(|_| None).collect();
    let stored: HashMap<_, _> = messages.by_secret().chain(starts.by_secret()).collect();
    let beginnings = batch.beginnings();
    for hand_off in &handed.hand_offs {
        if let (Some((told, row)), Some(begins)) =
            (stored.get(hand_off.secret.as_slice()), beginnings[hand_off.what])
        {
            all[hand_off.who] = readable(told.turn(row, hand_off, begins));
        }
    }
    all
}

/// The same for activities.
pub(crate) fn given_activities(
    handed: &HandOffs<ActivityAsk>,
    batch: &Batch,
    commits: Told<'_>,
) -> Vec<Option<Vec<RawActivity>>> {
    let mut all: Vec<Vec<RawActivity>> = handed.waiters.iter().map(|_| Vec::new()).collect();
    let stored: HashMap<_, _> = commits.by_secret().collect();
    let scheduled: Vec<&ActivityRow> = batch.scheduled().collect();
    for hand_off in &handed.hand_offs {
        if let Some((told, row)) = stored.get(hand_off.secret.as_slice()) {
            all[hand_off.who].extend(readable(told.activities(row, hand_off, scheduled[hand_off.what])));
        }
    }
    all.into_iter().map(|activities| Some(activities).filter(|activities| !activities.is_empty())).collect()
}

/// What cannot be read is somebody's when its lease is over.
fn readable<T>(read: Result<T>) -> Option<T> {
    let told = |error: &PostgresError| {
        tracing::error!(target: "duroxide::providers::postgres", %error, "a lease cannot be read");
    };
    read.inspect_err(told).ok()
}

/// Gives fetches what was stored as theirs. Who gets nothing looks: it was refused, or is there for whoever may have it. Says
/// whether there was any such.
pub(crate) fn serve<A: Ask>(
    shared: &Arc<Shared>,
    waiters: Vec<Waiter<A>>,
    given: Vec<Option<A::Leases>>,
    queue: fn(&mut State) -> &mut Parked<A>,
) -> bool {
    let mut is_left = false;
    for (waiter, leases) in waiters.into_iter().zip(given).rev() {
        let mut state = shared.state();
        let Some(leases) = leases else {
            is_left = true;
            let queue = queue(&mut state);
            queue.waiters.push_front(waiter);
            queue.tell();
            continue;
        };
        let queue = queue(&mut state);
        if queue.waiters.is_empty() {
            // Otherwise there are fetches for what others bring: they are to hear of it.
            queue.served_at = Some(Instant::now());
        }
        drop(state);
        let count = leases.leases().len();
        shared.db.counters.fetched.add(count);
        shared.db.counters.handed_over.add(count);
        // Its lease may end.
        shared.look_within(waiter.ask.lock_ms());
        drop(waiter.reply.send(Ok(Some(Guarded::new(leases, Arc::clone(shared))))));
    }
    is_left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Attempts, Commit, Lease, Message, Reply, Request};
    use outlast_model::WorkItem;
    use outlast_provider::{OsEntropy, TagFilter};
    use outlast_provider_kit::CommitPlan;
    use tokio::sync::oneshot;

    fn reply<T>() -> Reply<T> {
        Reply::new("test", oneshot::channel().0)
    }

    fn scheduled(session: Option<&str>, tag: Option<&str>) -> WorkItem {
        WorkItem::ActivityExecute {
            instance: "i".to_string(),
            execution_id: 1,
            id: 2,
            name: "A".to_string(),
            input: String::new(),
            session_id: session.map(ToString::to_string),
            tag: tag.map(ToString::to_string),
        }
    }

    /// A turn that schedules these activities.
    fn batch(activities: &[WorkItem]) -> Batch {
        let plan = CommitPlan::new(1, &[], activities, &[], Default::default(), vec![]).unwrap();
        let lease = Lease::Activity { secret: [0; 16], id: 1 };
        let mut batch = Batch::default();
        batch.push(Request::Commit(Box::new(Commit {
            lease,
            completion: None,
            plan: Some(plan),
            ahead: None,
            reply: reply(),
            attempts: Attempts::default(),
        })));
        batch
    }

    /// Fetches of so many activities of these tags each, all of which have looked in vain.
    fn waiting(asks: &[(usize, TagFilter)]) -> (State, Vec<impl Sized>) {
        let mut state = State::default();
        let mut callers = Vec::new();
        for (max_items, tags) in asks {
            let (reply, caller) = oneshot::channel();
            let ask = ActivityAsk { max_items: *max_items, lock_ms: 1, session: None, tags: tags.clone() };
            state.activities.waiters.push_back(Waiter { ask, parks: true, fresh: false, reply });
            callers.push(caller);
        }
        (state, callers)
    }

    /// Who is given what.
    fn given(handed: &HandOffs<ActivityAsk>) -> Vec<(usize, usize)> {
        handed.hand_offs.iter().map(|hand_off| (hand_off.what, hand_off.who)).collect()
    }

    #[test]
    fn who_waits_is_given_what_he_may_have_in_his_turn() {
        let three = batch(&[scheduled(None, None), scheduled(None, Some("gpu")), scheduled(None, None)]);
        let (any, gpu) = (TagFilter::Any, TagFilter::tags(["gpu"]));
        /// What is asked for, who is given what, and whether something is left.
        type Case<'a> = (&'a [(usize, TagFilter)], &'a [(usize, usize)], bool);
        let rows: [Case<'_>; 7] = [
            (&[], &[], true),
            (&[(1, any.clone())], &[(0, 0)], true),
            (&[(2, any.clone())], &[(0, 0), (1, 0)], true),
            (&[(9, any.clone())], &[(0, 0), (1, 0), (2, 0)], false),
            (&[(2, any.clone()), (9, any.clone())], &[(0, 0), (1, 0), (2, 1)], false),
            (&[(9, gpu.clone())], &[(1, 0)], true),
            (&[(9, gpu), (2, TagFilter::DefaultOnly)], &[(0, 0), (1, 1), (2, 0)], false),
        ];
        for (asks, expected, is_left) in rows {
            let (mut state, _callers) = waiting(asks);
            let handed = state.hand_over_activities(&three, &OsEntropy);
            assert_eq!(given(&handed), expected, "{asks:?}");
            assert_eq!(three.frees_activities(handed.hand_offs.len()), is_left, "{asks:?}");
            assert_eq!(handed.waiters.len() + state.activities.waiters.len(), asks.len());
        }
    }

    #[test]
    fn nothing_is_handed_over_that_others_have_a_right_to() {
        let of_session = batch(&[scheduled(Some("s"), None)]);
        let free = batch(&[scheduled(None, None)]);
        let (mut state, callers) = waiting(&[(1, TagFilter::Any)]);
        assert_eq!(given(&state.hand_over_activities(&of_session, &OsEntropy)), [], "its holder");
        state.activities.look = true;
        assert_eq!(given(&state.hand_over_activities(&free, &OsEntropy)), [], "what may wait since longer");
        state.activities.look = false;
        state.activities.waiters[0].fresh = true;
        assert_eq!(given(&state.hand_over_activities(&free, &OsEntropy)), [], "the same");
        state.activities.waiters[0].fresh = false;
        drop(callers);
        assert_eq!(given(&state.hand_over_activities(&free, &OsEntropy)), [], "nobody is there");
    }

    #[test]
    fn an_instance_begins_once() {
        let message = |instance: &str, begins, delay_ms, most| {
            let row = MessageRow {
                instance_id: instance.to_string(),
                work_item: "{}".to_string(),
                not_before: 0,
                begins,
            };
            Request::Message(Message { row, begins, delay_ms, most, reply: reply() })
        };
        let mut batch = Batch::default();
        for request in [
            message("event", false, 0, None),
            message("late", true, 1, None),
            message("bounded", true, 0, Some(9)),
            message("twice", true, 0, None),
            message("twice", true, 0, None),
        ] {
            batch.push(request);
        }
        let begins: Vec<bool> = batch.beginnings().iter().map(Option::is_some).collect();
        assert_eq!(begins, [false, false, false, true, false]);
        assert!(batch.frees_turns(3) && !batch.frees_turns(4), "four of them are there at once");
    }
}
