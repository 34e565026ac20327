//! Fetches that wait, and what a transaction gives them. The same for both queues.

use crate::SqliteError;
use crate::command::{Command, Cx};
use crate::contain::{self, contain};
use crate::counters::Counters;
use crate::db::Result;
use crate::fetch::Horizons;
use crate::handle::Handle;
use crate::waiting::{Ask, Guarded, Leases, Waiter};
use std::collections::VecDeque;
use std::mem;

/// The fetches of one queue.
///
/// | a waiter is | and | then |
/// |---|---|---|
/// | new | has been given something, or does not park | it is served |
/// | new | there is nothing | it stays, parked |
/// | new | a large turn was passed over | it stays, also if it does not park |
/// | parked | something may have become available | it is tried again |
/// | served | the transaction commits | it is told |
/// | served | the transaction is done again without it | it waits again, and is tried next |
/// | served | the commit fails | it is told so |
pub(crate) struct Waiters<A: Ask> {
    waiting: VecDeque<Waiter<A>>,
    served: Vec<Served<A>>,
}

/// A fetch with what it was given, before the commit.
struct Served<A: Ask> {
    waiter: Waiter<A>,
    given: Result<Option<A::Leases>>,
}

impl<A: Ask> Default for Waiters<A> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), served: Vec::new() }
    }
}

impl<A: Ask> Waiters<A> {
    pub(crate) fn push(&mut self, waiter: Waiter<A>) {
        self.waiting.push_back(waiter);
    }

    /// Whether somebody waits who is still there.
    pub(crate) fn is_anybody_waiting(&mut self) -> bool {
        self.waiting.retain(|waiter| !waiter.is_gone());
        !self.waiting.is_empty()
    }

    pub(crate) fn has_fetch_that_does_not_park(&self) -> bool {
        self.waiting.iter().any(|waiter| !waiter.parks && !waiter.is_gone())
    }

    pub(crate) fn served(&self) -> usize {
        self.served.len()
    }

    /// Gives the waiting what this transaction made available, in their order of arrival. Parked ones are tried only
    /// if there is news for them. An error means that a fetch failed half-way.
    pub(crate) fn serve(
        &mut self,
        cx: &mut Cx<'_>,
        news: bool,
        horizons: &mut Horizons,
        counters: &Counters,
    ) -> Result<()> {
        let mut waiters = mem::take(&mut self.waiting);
        let mut lines: Vec<A::Line> = Vec::new();
        while let Some(mut waiter) = waiters.pop_front() {
            if waiter.is_gone() {
                continue;
            }
            let mut given = Ok(None);
            let mut stays = waiter.parks;
            if waiter.fresh || news {
                let line = match lines.iter().position(|line| waiter.ask.fits(line)) {
                    Some(at) => &mut lines[at],
                    None => lines.push_mut(waiter.ask.line()),
                };
                given = contain(|| waiter.ask.fetch(cx, line, waiters.len() + 1, horizons)).unwrap_or_else(
                    || {
                        contain::report(A::OPERATION, None);
                        Err(SqliteError::Panicked { operation: A::OPERATION, instance: None })
                    },
                );
                stays |= A::has_passed_over(line);
            }
            let failed = given.is_err();
            if stays && matches!(given, Ok(None)) {
                waiter.fresh = !waiter.parks;
                self.waiting.push_back(waiter);
            } else {
                counters.fused_fetches.add(usize::from(!waiter.fresh));
                self.served.push(Served { waiter, given });
            }
            if failed {
                self.waiting.append(&mut waiters);
                return Err(SqliteError::Other("a fetch failed half-way".to_string()));
            }
        }
        Ok(())
    }

    /// Whether a fetch panicked in this transaction.
    pub(crate) fn has_panicked(&self) -> bool {
        self.served.iter().any(|served| matches!(served.given, Err(SqliteError::Panicked { .. })))
    }

    /// The transaction that served these is gone: they wait again, except those that failed by themselves. All who wait
    /// are tried after a batch that is done again, see [`Store::process_with`](crate::store::Store::process_with).
    pub(crate) fn return_served(&mut self) {
        for served in mem::take(&mut self.served).into_iter().rev() {
            match served.given {
                Err(_) => self.served.push(served),
                Ok(_) => self.waiting.push_front(served.waiter),
            }
        }
    }

    /// The transaction committed: tells the served. Returns what gives back the leases that nobody takes.
    pub(crate) fn deliver(&mut self, handle: &Handle) -> Vec<Command> {
        mem::take(&mut self.served).into_iter().flat_map(|served| send(served, handle)).collect()
    }

    /// Nothing was committed: tells the served and the new. Parked ones go on waiting.
    pub(crate) fn fail(&mut self, fault: &SqliteError) {
        for Served { waiter, given } in mem::take(&mut self.served) {
            let error = given
                .err()
                .map_or_else(|| fault.classified(A::OPERATION), |own| own.classified(A::OPERATION));
            // A caller that went away does not want to know.
            let _ = waiter.reply.send(Err(error));
        }
        for waiter in mem::take(&mut self.waiting) {
            match waiter.fresh {
                true => drop(waiter.reply.send(Err(fault.classified(A::OPERATION)))),
                false => self.waiting.push_back(waiter),
            }
        }
    }
}

/// Tells a fetch what it got; gives back the leases that nobody takes.
fn send<A: Ask>(served: Served<A>, handle: &Handle) -> Vec<Command> {
    let answer = match served.given {
        Ok(leases) => Ok(leases.map(|leases| Guarded::new(leases, handle.clone()))),
        Err(error) => Err(error.classified(A::OPERATION)),
    };
    match served.waiter.reply.send(answer) {
        Ok(()) | Err(Ok(None) | Err(_)) => Vec::new(),
        Err(Ok(Some(guarded))) => {
            let leases = guarded.take();
            let tokens = leases.iter().flat_map(Leases::tokens);
            tokens.map(|token| Command::Release(A::Leases::KIND, token)).collect()
        }
    }
}
