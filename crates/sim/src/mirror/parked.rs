//! Fetches that wait in the SQLite store.
//!
//! The SQLite store serves a waiting fetch inside the commit that makes an item available. The memory store must lease the same item
//! before it receives another call. So after each call, all waiting fetches are polled, and the memory store is asked for each fetch
//! that was served.

use super::{Answer, Mirror};
use crate::at_once::at_once;
use outlast_provider::{FetchedTurn, FetchedWork, Provider, TurnRequest, WorkRequest};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The waiting fetches of one queue, by their order of arrival.
pub(super) struct ParkedFetches<T> {
    next: AtomicU64,
    fetches: Mutex<BTreeMap<u64, Fetch<T>>>,
}

impl<T> Default for ParkedFetches<T> {
    fn default() -> Self {
        Self { next: AtomicU64::new(0), fetches: Mutex::default() }
    }
}

struct Fetch<T> {
    stored: Pin<Box<dyn Future<Output = Answer<T>> + Send>>,
    /// Asks the memory store for the same items, without waiting.
    expected: Box<dyn Fn() -> Option<Answer<T>> + Send>,
    answer: Option<Answer<T>>,
    /// Whether the fetch waits if there is no item.
    waits: bool,
    /// Wakes the task of the fetch.
    waker: Waker,
}

/// The items of a fetch.
pub(super) trait Items: Clone {
    const CALL: &'static str;
    fn tokens(&self) -> Vec<String>;
    /// The items as text, without their random tokens.
    fn comparable(&self) -> String;
}

impl Items for Option<FetchedTurn> {
    const CALL: &'static str = "fetch_turn";

    fn tokens(&self) -> Vec<String> {
        self.iter().map(|turn| turn.lock_token.clone()).collect()
    }

    fn comparable(&self) -> String {
        let Some(turn) = self else { return "nothing".to_string() };
        let mut turn = turn.clone();
        turn.lock_token.clear();
        let keys: BTreeMap<_, _> = turn.item.kv_snapshot.drain().collect();
        format!("{turn:?} {keys:?}")
    }
}

impl Items for Vec<FetchedWork> {
    const CALL: &'static str = "fetch_work_items";

    fn tokens(&self) -> Vec<String> {
        self.iter().map(|work| work.lock_token.clone()).collect()
    }

    fn comparable(&self) -> String {
        let items = self.iter().map(|work| (&work.item, work.attempt_count, &work.notes));
        format!("{:?}", items.collect::<Vec<_>>())
    }
}

impl<T: Items> ParkedFetches<T> {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Fetch<T>>> {
        self.fetches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Polls all fetches without an answer. Returns whether one of them was answered: it may have served others.
    fn poll_all(&self, mirror: &Mirror) -> bool {
        let mut is_any_answered = false;
        for fetch in self.lock().values_mut().filter(|fetch| fetch.answer.is_none()) {
            let polled = fetch.stored.as_mut().poll(&mut Context::from_waker(&fetch.waker));
            let Poll::Ready(found) = polled else { continue };
            // A fetch that found nothing until its timeout may have missed an item of the same millisecond.
            if !fetch.waits || !matches!(&found, Ok(items) if items.tokens().is_empty()) {
                mirror.compare_items(&found, (fetch.expected)());
            }
            fetch.answer = Some(found);
            fetch.waker.wake_by_ref();
            is_any_answered = true;
        }
        is_any_answered
    }
}

/// The place of a fetch in its queue. If the caller is dropped, the place gives the leases back to both stores.
struct Place<'a, T: Items> {
    mirror: &'a Mirror,
    parked: &'a ParkedFetches<T>,
    number: u64,
    give_back: fn(&Mirror, &str),
}

impl<T: Items> Drop for Place<'_, T> {
    fn drop(&mut self) {
        let fetch = self.parked.lock().remove(&self.number);
        if let Some(Ok(items)) = fetch.and_then(|fetch| fetch.answer) {
            items.tokens().iter().for_each(|token| (self.give_back)(self.mirror, token));
            self.mirror.settle();
        }
    }
}

impl Mirror {
    /// Polls the waiting fetches until none of them is served.
    pub(super) fn settle(&self) {
        while self.parked_turn_fetches.poll_all(self) | self.parked_activity_fetches.poll_all(self) {}
    }

    /// Compares the items of both stores, and remembers their tokens.
    fn compare_items<T: Items>(&self, found: &Answer<T>, expected: Option<Answer<T>>) {
        let Some(expected) = expected else {
            self.state().difference.get_or_insert(format!("{} of the specification waits", T::CALL));
            return;
        };
        if let (Ok(found), Ok(expected)) = (found, &expected) {
            self.state().tokens.extend(found.tokens().into_iter().zip(expected.tokens()));
        }
        let text = |answer: &Answer<T>| answer.as_ref().map(Items::comparable).map_err(Clone::clone);
        self.compare(T::CALL, &text(found), &text(&expected));
    }

    async fn wait<T: Items>(
        &self,
        parked: &ParkedFetches<T>,
        fetch: Fetch<T>,
        give_back: fn(&Self, &str),
    ) -> Answer<T> {
        let number = parked.next.fetch_add(1, Relaxed);
        parked.lock().insert(number, fetch);
        let place = Place { mirror: self, parked, number, give_back };
        let answer = poll_fn(|context| {
            if let Some(fetch) = parked.lock().get_mut(&number) {
                fetch.waker.clone_from(context.waker());
            }
            self.settle();
            let answer = parked.lock().get_mut(&number).and_then(|fetch| fetch.answer.take());
            answer.map_or(Poll::Pending, Poll::Ready)
        })
        .await;
        drop(place);
        answer
    }

    pub(super) async fn park_turn(&self, request: TurnRequest<'_>) -> Answer<Option<FetchedTurn>> {
        let TurnRequest { lock_timeout, poll_timeout, with_history, .. } = request;
        let poll_timeout = if self.waits { poll_timeout } else { Duration::ZERO };
        let filters = [request.filter.cloned(), request.filter.cloned()];
        let [filter, same_filter] = filters;
        let (store, model) = (Arc::clone(&self.store), Arc::clone(&self.model));
        let stored = async move {
            let request = TurnRequest { lock_timeout, poll_timeout, filter: filter.as_ref(), with_history };
            store.fetch_turn(request).await
        };
        let expected = move || {
            let (poll_timeout, filter) = (Duration::ZERO, same_filter.as_ref());
            at_once(model.fetch_turn(TurnRequest { lock_timeout, poll_timeout, filter, with_history }))
        };
        self.wait(
            &self.parked_turn_fetches,
            Fetch::new(!poll_timeout.is_zero(), stored, expected),
            |mirror, token| {
                let other = mirror.other_token(token);
                let _ = at_once(mirror.model.abandon_orchestration_item(&other, None, true));
                let _ = at_once(mirror.store.abandon_orchestration_item(token, None, true));
            },
        )
        .await
    }

    pub(super) async fn park_work(&self, request: WorkRequest<'_>) -> Answer<Vec<FetchedWork>> {
        let WorkRequest { max_items, lock_timeout, poll_timeout, .. } = request;
        let poll_timeout = if self.waits { poll_timeout } else { Duration::ZERO };
        let [(session, tags), (same_session, same_tags)] =
            [0, 1].map(|_| (request.session.cloned(), request.tag_filter.clone()));
        let (store, model) = (Arc::clone(&self.store), Arc::clone(&self.model));
        let stored = async move {
            let (session, tag_filter) = (session.as_ref(), &tags);
            let request = WorkRequest { max_items, lock_timeout, poll_timeout, session, tag_filter };
            store.fetch_work_items(request).await
        };
        let expected = move || {
            let (session, tag_filter, poll_timeout) = (same_session.as_ref(), &same_tags, Duration::ZERO);
            at_once(model.fetch_work_items(WorkRequest {
                max_items,
                lock_timeout,
                poll_timeout,
                session,
                tag_filter,
            }))
        };
        self.wait(
            &self.parked_activity_fetches,
            Fetch::new(!poll_timeout.is_zero(), stored, expected),
            |mirror, token| {
                let other = mirror.other_token(token);
                let _ = at_once(mirror.model.abandon_work_item(&other, None, true));
                let _ = at_once(mirror.store.abandon_work_item(token, None, true));
            },
        )
        .await
    }
}

impl<T> Fetch<T> {
    fn new(
        waits: bool,
        stored: impl Future<Output = Answer<T>> + Send + 'static,
        expected: impl Fn() -> Option<Answer<T>> + Send + 'static,
    ) -> Self {
        let waker = Waker::noop().clone();
        Self { stored: Box::pin(stored), expected: Box::new(expected), answer: None, waits, waker }
    }
}
