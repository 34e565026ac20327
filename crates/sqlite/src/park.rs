//! Parked fetches: which fetches wait, and which leases a transaction gives them. The same code serves both queues.

use crate::command::{Command, Handle};
use crate::contain::{self, contain};
use crate::counters::Counters;
use crate::db::{Db, Result, column, stored_time};
use crate::large_requests::LargeTurns;
use crate::leased::{Guarded, LeaseSender, Leases};
use crate::transaction::Transaction;
use crate::{SqliteError, sql};
use outlast_provider_kit::queue::PerQueue;
use std::collections::VecDeque;
use std::mem;

/// The conditions of a fetch.
pub(crate) trait Ask: Sized + Send {
    /// The leases that the fetch gets.
    type Leases: Leases;
    /// The candidates of one transaction for fetches with equal conditions.
    type Lookup;
    /// The operation that the errors of the fetch name.
    const OPERATION: &'static str;

    fn lookup(&self) -> Self::Lookup;
    /// Whether the candidates of the lookup fit the conditions of this fetch.
    fn fits(&self, lookup: &Self::Lookup) -> bool;
    /// Whether the lookup passed over a candidate that a later transaction may hand out.
    fn has_passed_over(lookup: &Self::Lookup) -> bool;
    /// Leases candidates of the lookup. `waiting` is the number of fetches still to be served, this one included.
    fn fetch(
        &self,
        tx: &mut Transaction<'_>,
        lookup: &mut Self::Lookup,
        waiting: usize,
        state: &mut FetchState,
    ) -> Result<Option<Self::Leases>>;
}

/// The number of candidates that one statement looks up at most.
pub(crate) const MAX_LOOKUP: usize = 64;

/// The knowledge that the writer keeps from one fetch to the next.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FetchState {
    /// No lease of the queue expires before this time, so a fetch before it does not search for expired leases. A time that is
    /// too early only costs a statement.
    pub(crate) next_lease_end: PerQueue<u64>,
    pub(crate) large_turns: LargeTurns,
}

/// A fetch that waits for leases.
pub(crate) type Fetch<A> = outlast_provider_kit::Fetch<A, LeaseSender<<A as Ask>::Leases>>;

/// The fetches of one queue.
///
/// | fetch | event | result |
/// |---|---|---|
/// | new | there is something to lease, or the fetch does not park | served |
/// | new | there is nothing to lease | parked |
/// | new | a large turn was passed over | stays, even if the fetch does not park |
/// | parked | an item may have become available | polled again |
/// | served | the transaction commits | answered |
/// | served | the transaction is applied again without the fetch | parked, and polled next |
/// | served | the commit fails | answered with the error |
pub(crate) struct ParkedFetches<A: Ask> {
    waiting: VecDeque<Fetch<A>>,
    served: Vec<Served<A>>,
}

/// A fetch with its leases, before the commit.
struct Served<A: Ask> {
    fetch: Fetch<A>,
    leases: Result<Option<A::Leases>>,
}

impl<A: Ask> Default for ParkedFetches<A> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), served: Vec::new() }
    }
}

impl<A: Ask> ParkedFetches<A> {
    pub(crate) fn push(&mut self, fetch: Fetch<A>) {
        self.waiting.push_back(fetch);
    }

    /// Whether a fetch waits whose caller has not stopped waiting.
    pub(crate) fn is_any_waiting(&mut self) -> bool {
        self.waiting.retain(|fetch| !fetch.is_gone());
        !self.waiting.is_empty()
    }

    /// Whether a fetch that does not park waits, which it does only for a large turn that was passed over.
    pub(crate) fn has_fetch_that_does_not_park(&self) -> bool {
        self.waiting.iter().any(|fetch| !fetch.parks && !fetch.is_gone())
    }

    pub(crate) fn served(&self) -> usize {
        self.served.len()
    }

    /// Leases available items to the waiting fetches, in the order of their arrival. Parked fetches are polled only if
    /// `is_due`. An error means that a fetch failed after it had written something.
    pub(crate) fn serve(
        &mut self,
        tx: &mut Transaction<'_>,
        is_due: bool,
        state: &mut FetchState,
        counters: &Counters,
    ) -> Result<()> {
        let mut fetches = mem::take(&mut self.waiting);
        let mut lookups: Vec<A::Lookup> = Vec::new();
        while let Some(mut fetch) = fetches.pop_front() {
            if fetch.is_gone() {
                continue;
            }
            let mut leases = Ok(None);
            let mut stays = fetch.parks;
            if fetch.is_new || is_due {
                let lookup = match lookups.iter().position(|lookup| fetch.ask.fits(lookup)) {
                    Some(at) => &mut lookups[at],
                    None => lookups.push_mut(fetch.ask.lookup()),
                };
                leases =
                    contain(|| fetch.ask.fetch(tx, lookup, fetches.len() + 1, state)).unwrap_or_else(|| {
                        contain::report(A::OPERATION, None);
                        Err(SqliteError::Panicked { operation: A::OPERATION, instance: None })
                    });
                stays |= A::has_passed_over(lookup);
            }
            let failed = leases.is_err();
            if stays && matches!(leases, Ok(None)) {
                fetch.is_new = !fetch.parks;
                self.waiting.push_back(fetch);
            } else {
                counters.parked_fetches_served.add(usize::from(!fetch.is_new));
                self.served.push(Served { fetch, leases });
            }
            if failed {
                self.waiting.append(&mut fetches);
                return Err(SqliteError::Other("a fetch failed after it had written something".to_string()));
            }
        }
        Ok(())
    }

    /// Whether a fetch panicked in this transaction.
    pub(crate) fn has_panicked(&self) -> bool {
        self.served.iter().any(|served| matches!(served.leases, Err(SqliteError::Panicked { .. })))
    }

    /// The transaction was rolled back: served fetches wait again, except those that failed by themselves. The writer polls
    /// them after it has applied the batch again, see [`Writer::process_with`](crate::writer::Writer::process_with).
    pub(crate) fn return_served(&mut self) {
        for served in mem::take(&mut self.served).into_iter().rev() {
            match served.leases {
                Err(_) => self.served.push(served),
                Ok(_) => self.waiting.push_front(served.fetch),
            }
        }
    }

    /// The transaction committed: answers the served fetches. Returns commands that give back the leases of dropped callers.
    pub(crate) fn deliver(&mut self, handle: &Handle) -> Vec<Command> {
        mem::take(&mut self.served).into_iter().flat_map(|served| send(served, handle)).collect()
    }

    /// The transaction did not commit: answers served and new fetches with the error. Parked fetches stay parked.
    pub(crate) fn fail(&mut self, fault: &SqliteError) {
        for Served { fetch, leases } in mem::take(&mut self.served) {
            let error = leases
                .err()
                .map_or_else(|| fault.classified(A::OPERATION), |own| own.classified(A::OPERATION));
            // A dropped caller gets no answer.
            let _ = fetch.caller.send(Err(error));
        }
        for fetch in mem::take(&mut self.waiting) {
            match fetch.is_new {
                true => drop(fetch.caller.send(Err(fault.classified(A::OPERATION)))),
                false => self.waiting.push_back(fetch),
            }
        }
    }
}

/// Answers a fetch. Returns commands that give back its leases if its caller was dropped.
fn send<A: Ask>(served: Served<A>, handle: &Handle) -> Vec<Command> {
    let answer = match served.leases {
        Ok(leases) => Ok(leases.map(|leases| Guarded::new(leases, handle.clone()))),
        Err(error) => Err(error.classified(A::OPERATION)),
    };
    match served.fetch.caller.send(answer) {
        Ok(()) | Err(Ok(None) | Err(_)) => Vec::new(),
        Err(Ok(Some(guarded))) => {
            let leases = guarded.take();
            let tokens = leases.iter().flat_map(Leases::tokens);
            tokens.map(|token| Command::Release(A::Leases::KIND, token)).collect()
        }
    }
}

/// The time at which the next item becomes available by itself, according to the tables. Items that became available after
/// `polled_at` count, because the poll may have missed them.
pub(crate) fn next_available(db: &Db, polled_at: u64) -> Result<u64> {
    let mut next = i64::MAX;
    for statement in [
        sql::NEXT_MESSAGE,
        sql::NEXT_LEASE_END,
        sql::NEXT_ACTIVITY_LEASE_END,
        sql::NEXT_DELAYED_ACTIVITY,
        sql::NEXT_SESSION_END,
    ] {
        let at = db.one(statement, [column(polled_at)], |row| stored_time(row, 0))?.flatten();
        next = next.min(at.unwrap_or(i64::MAX));
    }
    Ok(u64::try_from(next).unwrap_or(0))
}
