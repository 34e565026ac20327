//! The store's side of the lease protocol, one step for each call.

use super::{BORN_DEAD, Bug, DISTURBED, ENDED, Leases, MOST, ONE_HOLDER, RENEWED_TAKEN, REVIVED, TAKEN};
use crate::model::search::ForbiddenEvents;

/// The worker that holds a token. A worker has one token at a time; no worker can use a forgotten token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Token {
    Of(usize),
    Forgotten,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lease {
    pub(super) token: Token,
    /// Remaining time, by the true time.
    pub(super) left: i8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    NotSent,
    Waiting { hidden: i8, covered_by: Option<Token> },
    Deleted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Message {
    pub(super) place: Place,
    pub(super) recorded: u8,
}

/// The state of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Worker {
    Idle,
    /// The fetch of the worker waits, and the lease began at the call. Only with [`Bug::LeaseStartsAtCall`].
    Asking {
        left: i8,
    },
    /// The worker runs a turn on these messages, one bit each.
    Turn {
        batch: u8,
    },
    /// The token of the worker was checked. Only with [`Bug::CheckThenWrite`].
    Checked {
        batch: u8,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::model) struct State {
    pub(super) skew: [i8; MOST],
    pub(super) lease: Option<Lease>,
    pub(super) messages: [Message; MOST],
    pub(super) workers: [Worker; MOST],
    pub(super) forbidden: ForbiddenEvents,
}

impl State {
    pub(super) fn is_live(&self, lease: Lease, judge: usize) -> bool {
        lease.left > self.skew[judge]
    }

    pub(super) fn is_held_by(&self, worker: usize) -> bool {
        self.lease.is_some_and(|lease| lease.token == Token::Of(worker))
    }

    /// The messages that are visible to a worker.
    pub(super) fn visible(&self, worker: usize) -> u8 {
        let mut batch = 0;
        for (nth, message) in self.messages.iter().enumerate() {
            if let Place::Waiting { hidden, .. } = message.place
                && hidden <= self.skew[worker]
            {
                batch |= 1 << nth;
            }
        }
        batch
    }

    /// The worker becomes idle and forgets its token.
    pub(super) fn leave(&mut self, worker: usize) {
        self.workers[worker] = Worker::Idle;
        let forget = |token: &mut Token| {
            if *token == Token::Of(worker) {
                *token = Token::Forgotten;
            }
        };
        self.lease.iter_mut().for_each(|lease| forget(&mut lease.token));
        for message in &mut self.messages {
            if let Place::Waiting { covered_by: Some(token), .. } = &mut message.place {
                forget(token);
            }
        }
    }
}

impl Leases {
    pub(super) fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// Whether the store accepts the token of the worker for this lease.
    pub(super) fn fits(&self, lease: Lease, worker: usize) -> bool {
        lease.token == Token::Of(worker) || self.has(Bug::TokensRepeat)
    }

    pub(super) fn fence(&self, state: &State, worker: usize) -> bool {
        state.lease.is_some_and(|lease| {
            self.fits(lease, worker) && (state.is_live(lease, worker) || self.has(Bug::ExpiryIgnored))
        })
    }

    pub(super) fn fetch(&self, state: &mut State, worker: usize) -> Option<()> {
        let (held, batch) =
            (state.lease.is_some_and(|lease| state.is_live(lease, worker)), state.visible(worker));
        let kept_out = match self.bug {
            Some(Bug::LeaseNotExclusive) => false,
            Some(Bug::LeaseNeverEnds) => state.lease.is_some(),
            _ => held,
        };
        if kept_out || batch == 0 {
            return None;
        }
        if held {
            state.forbidden.insert(ONE_HOLDER);
        }
        let left = match state.workers[worker] {
            Worker::Asking { left } => left,
            _ => self.lease + state.skew[worker],
        };
        let lease = Lease { token: Token::Of(worker), left };
        if !state.is_live(lease, worker) {
            state.forbidden.insert(BORN_DEAD);
        }
        state.lease = Some(lease);
        for (nth, message) in state.messages.iter_mut().enumerate() {
            if let Place::Waiting { covered_by, .. } = &mut message.place
                && batch & (1 << nth) != 0
                && !(covered_by.is_some() && self.has(Bug::OldCoverKept))
            {
                *covered_by = Some(Token::Of(worker));
            }
        }
        state.workers[worker] = Worker::Turn { batch };
        Some(())
    }

    pub(super) fn renew(&self, state: &mut State, worker: usize) -> Option<()> {
        let lease = state.lease.filter(|lease| self.fits(*lease, worker))?;
        let live = state.is_live(lease, worker);
        if !live && !self.has(Bug::RenewalRevives) {
            return None;
        }
        if !live {
            state.forbidden.insert(REVIVED);
        }
        if lease.token != Token::Of(worker) {
            state.forbidden.insert(RENEWED_TAKEN);
        }
        state.lease = Some(Lease { left: lease.left.max(self.lease + state.skew[worker]), ..lease });
        Some(())
    }

    pub(super) fn commit(
        &self,
        state: &mut State,
        worker: usize,
        batch: u8,
        checked: bool,
        answered: bool,
    ) -> Option<()> {
        if !checked && !self.fence(state, worker) {
            if self.has(Bug::RefusedCommitDeletes) {
                delete(state, |covered_by| covered_by == Some(Token::Of(worker)));
                return Some(());
            }
            return None;
        }
        match state.lease.filter(|_| state.is_held_by(worker)) {
            Some(lease) if state.is_live(lease, worker) => {}
            held => state.forbidden.extend([if held.is_some() { ENDED } else { TAKEN }]),
        }
        for (nth, message) in state.messages.iter_mut().enumerate() {
            message.recorded = (message.recorded + u8::from(batch & (1 << nth) != 0)).min(2);
        }
        let (all, any_token) = (self.has(Bug::LateMessagesDeleted), self.has(Bug::TokensRepeat));
        delete(state, |covered_by| {
            all || covered_by == Some(Token::Of(worker)) || (any_token && covered_by.is_some())
        });
        if state.lease.is_some_and(|lease| self.fits(lease, worker)) && !self.has(Bug::TokenOutlivesCommit) {
            state.lease = None;
        }
        match answered {
            true => state.leave(worker),
            false => state.workers[worker] = Worker::Turn { batch },
        }
        Some(())
    }

    /// Abandons a lease. A worker whose token does not fit is refused.
    pub(super) fn give_back(&self, state: &mut State, worker: usize, delayed: bool, answered: bool) {
        let stranger = self.has(Bug::StrangerGivesBack);
        if let Some(lease) = state.lease.filter(|lease| self.fits(*lease, worker) || stranger) {
            if lease.token != Token::Of(worker) {
                state.forbidden.insert(DISTURBED);
            }
            state.lease = None;
            let hide = self.delay + state.skew[worker];
            for message in &mut state.messages {
                if let Place::Waiting { hidden, covered_by } = &mut message.place
                    && *covered_by == Some(Token::Of(worker))
                {
                    *covered_by = None;
                    *hidden = if delayed { hide } else { *hidden };
                }
            }
        }
        if answered {
            state.leave(worker);
        }
    }

    /// The slowest clock.
    pub(super) fn slowest(&self) -> i8 {
        *self.skews.iter().copied().flatten().min().expect("there are clocks")
    }

    /// The holder of the lease is taken for dead: the lease has ended for every clock.
    pub(super) fn end_lease(&self, state: &mut State) {
        let slowest = self.slowest();
        state.lease.iter_mut().for_each(|lease| lease.left = slowest);
    }

    /// One tick passes. Remaining times stop at the slowest clock, because no clock can distinguish earlier times.
    pub(super) fn tick(&self, state: &mut State) {
        let slowest = self.slowest();
        let pass = |left: &mut i8| *left = (*left - 1).max(slowest);
        state.lease.iter_mut().for_each(|lease| pass(&mut lease.left));
        for message in &mut state.messages {
            if let Place::Waiting { hidden, .. } = &mut message.place {
                pass(hidden);
            }
        }
        for worker in &mut state.workers {
            if let Worker::Asking { left } = worker {
                pass(left);
            }
        }
    }
}

fn delete(state: &mut State, is_covered: impl Fn(Option<Token>) -> bool) {
    for message in &mut state.messages {
        if matches!(message.place, Place::Waiting { covered_by, .. } if is_covered(covered_by)) {
            message.place = Place::Deleted;
        }
    }
}
