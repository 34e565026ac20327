//! The store's side of activities and sessions, one step for each call.

use super::{
    Activities, Bug, CANCELLED, DISTURBED, ENDED, MOST, ONE_HOLDER, ONE_OWNER, REVIVED, SESSION_REVIVED,
    TAKEN, UNWANTED,
};
use crate::model::search::ForbiddenEvents;

/// The worker that holds a token. No worker can use a forgotten token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Token {
    Of(usize),
    Forgotten,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Row {
    pub(super) token: Option<Token>,
    pub(super) left: i8,
    pub(super) hidden: i8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Demand {
    NotYet,
    Wanted,
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Activity {
    pub(super) demand: Demand,
    pub(super) row: Option<Row>,
    pub(super) answers: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Session {
    pub(super) owner: Option<u8>,
    pub(super) left: i8,
}

/// The state of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Worker {
    Idle,
    Runs(usize),
    /// The worker has checked that the session is free. Only with [`Bug::SessionClaimedLate`].
    Found(usize),
    /// The worker treats the activity as cancelled. Only with [`Bug::CancelledByAnError`].
    WindsDown(usize),
    /// The worker has removed the activity. Only with [`Bug::DeleteThenTell`].
    Removed(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::model) struct State {
    pub(super) activities: [Activity; MOST],
    /// The session of all activities but the last of three.
    pub(super) session: Option<Session>,
    pub(super) workers: [Worker; MOST],
    pub(super) forbidden: ForbiddenEvents,
}

impl State {
    pub(super) fn leave(&mut self, worker: usize) {
        self.workers[worker] = Worker::Idle;
        for row in self.activities.iter_mut().filter_map(|activity| activity.row.as_mut()) {
            if row.token == Some(Token::Of(worker)) {
                row.token = Some(Token::Forgotten);
            }
        }
    }

    pub(super) fn answer(&mut self, nth: usize) {
        if self.activities[nth].demand == Demand::Cancelled {
            self.forbidden.insert(CANCELLED);
        }
        let answers = &mut self.activities[nth].answers;
        *answers = (*answers + 1).min(2);
    }

    pub(super) fn has_session(&self) -> bool {
        self.session.is_some_and(|session| session.left > 0)
    }

    /// Whether the activity belongs to the session: all but the last of three do.
    pub(super) fn is_bound(nth: usize) -> bool {
        nth + 1 < MOST
    }
}

impl Row {
    pub(super) const NEW: Self = Self { token: None, left: 0, hidden: 0 };

    pub(super) fn is_leased(&self) -> bool {
        self.token.is_some() && self.left > 0
    }
}

impl Activities {
    pub(super) fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    pub(super) fn admits(&self, state: &State, worker: usize, nth: usize) -> bool {
        let other = state.session.filter(|session| session.owner != Some(self.owners[worker]));
        let closed = other.is_some_and(|session| session.left > 0 || self.has(Bug::SessionNeverEnds));
        !State::is_bound(nth) || !closed || self.has(Bug::SessionIgnored)
    }

    pub(super) fn fetch(&self, state: &mut State, worker: usize, nth: usize) -> Option<()> {
        let row = state.activities[nth].row.filter(|row| row.hidden <= 0)?;
        let late = state.workers[worker] == Worker::Found(nth);
        if (row.is_leased() && !self.has(Bug::LeaseNotExclusive))
            || !(late || self.admits(state, worker, nth))
        {
            return None;
        }
        if row.is_leased() {
            state.forbidden.insert(ONE_HOLDER);
        }
        if state.activities[nth].demand == Demand::Cancelled {
            state.forbidden.insert(UNWANTED);
        }
        if State::is_bound(nth) {
            let owner = Some(self.owners[worker]);
            if state.session.is_some_and(|session| session.left > 0 && session.owner != owner) {
                state.forbidden.insert(ONE_OWNER);
            }
            state.session = Some(Session { owner, left: self.session });
        }
        state.activities[nth].row = Some(Row { token: Some(Token::Of(worker)), left: self.lease, hidden: 0 });
        state.workers[worker] = Worker::Runs(nth);
        Some(())
    }

    /// A refused renewal means that the lease was lost or the activity was cancelled: the worker stops without an
    /// acknowledgement.
    pub(super) fn renew(&self, state: &mut State, worker: usize, nth: usize) {
        let row = state.activities[nth].row.filter(|row| row.token == Some(Token::Of(worker)));
        match row {
            Some(row) if row.is_leased() || self.has(Bug::RenewalRevives) => {
                if !row.is_leased() {
                    state.forbidden.insert(REVIVED);
                }
                state.activities[nth].row = Some(Row { left: row.left.max(self.lease), ..row });
            }
            _ => state.leave(worker),
        }
    }

    /// Whether the store lets the worker remove the row.
    pub(super) fn removes(&self, state: &mut State, worker: usize, nth: usize) -> bool {
        match state.activities[nth].row {
            Some(row) if row.token == Some(Token::Of(worker)) => {
                let late = !row.is_leased();
                if late && self.has(Bug::ExpiryIgnored) {
                    state.forbidden.insert(ENDED);
                }
                !late || self.has(Bug::ExpiryIgnored)
            }
            Some(_) => {
                if self.has(Bug::GoneIsFine) {
                    state.forbidden.insert(TAKEN);
                }
                self.has(Bug::GoneIsFine)
            }
            None => self.has(Bug::GoneIsFine),
        }
    }

    pub(super) fn complete(&self, state: &mut State, worker: usize, nth: usize, answered: bool) {
        if !self.removes(state, worker, nth) {
            return self.give_back(state, worker, nth, true);
        }
        if state.activities[nth].row.is_some_and(|row| row.token == Some(Token::Of(worker))) {
            state.activities[nth].row = None;
        }
        if self.has(Bug::DeleteThenTell) {
            state.workers[worker] = Worker::Removed(nth);
            return;
        }
        state.answer(nth);
        if answered {
            state.leave(worker);
        }
    }

    pub(super) fn give_back(&self, state: &mut State, worker: usize, nth: usize, delayed: bool) {
        let mine = Some(Token::Of(worker));
        let is_fitting = |row: &Row| row.token == mine || self.has(Bug::StrangerGivesBack);
        if let Some(row) = state.activities[nth].row.filter(is_fitting) {
            if row.token != mine {
                state.forbidden.insert(DISTURBED);
            }
            let hidden = if delayed { self.delay } else { 0 };
            state.activities[nth].row = Some(Row { hidden, ..Row::NEW });
        }
        state.leave(worker);
    }

    pub(super) fn renew_session(&self, state: &mut State, owner: u8) -> Option<()> {
        let session = state.session.filter(|session| session.owner == Some(owner))?;
        if session.left == 0 && !self.has(Bug::SessionRevives) {
            return None;
        }
        if session.left == 0 {
            state.forbidden.insert(SESSION_REVIVED);
        }
        state.session = Some(Session { left: session.left.max(self.session), ..session });
        Some(())
    }

    pub(super) fn crash(&self, state: &mut State, owner: u8) {
        for (worker, _) in self.owners.iter().enumerate().filter(|(_, of)| **of == owner) {
            state.leave(worker);
        }
        if let Some(session) = state.session.as_mut().filter(|session| session.owner == Some(owner)) {
            session.owner = None;
        }
    }

    pub(super) fn tick(state: &mut State) {
        for row in state.activities.iter_mut().filter_map(|activity| activity.row.as_mut()) {
            row.left = (row.left - 1).max(0);
            row.hidden = (row.hidden - 1).max(0);
        }
        state.session.iter_mut().for_each(|session| session.left = (session.left - 1).max(0));
    }
}
