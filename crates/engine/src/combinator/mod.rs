//! Waiting for several futures at once. Every combinator takes any future: durable futures, `async` blocks, `&mut` to
//! either, and other combinators. Futures that lose a select are dropped, which cancels them.
//!
//! The two- and three-way forms poll all their futures each time, in the order of arguments. The forms over any number
//! poll only futures that were woken, in the order of their index, so that a join of 10,000 costs one poll for each
//! outcome.

mod child;
mod either;
mod future_set;

pub use either::{Either2, Either3};

use crate::context::OrchestrationContext;
use child::Child;
use future_set::FutureSet;
use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::pin;
use std::task::Poll;

impl OrchestrationContext {
    /// Waits for all; outputs in the order of the futures.
    pub async fn join<T, F>(&self, futures: Vec<F>) -> Vec<T>
    where
        F: Future<Output = T>,
    {
        self.join_all(futures).await
    }

    /// Waits for all; outputs in the order of the futures.
    pub fn join_all<I>(&self, futures: I) -> impl Future<Output = Vec<<I::Item as Future>::Output>>
    where
        I: IntoIterator,
        I::Item: Future,
    {
        // Not an `async fn`, which would keep the iterator and the borrows of its closure.
        let mut set = FutureSet::new(futures);
        let mut outputs: Vec<Option<_>> = (0..set.len()).map(|_| None).collect();
        async move {
            poll_fn(|cx| {
                set.poll(cx, |index, output| {
                    outputs[index] = Some(output);
                    true
                });
                if set.is_done() { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            // The future of each index has filled its place.
            outputs.into_iter().flatten().collect()
        }
    }

    /// Waits for both.
    pub async fn join2<T1, T2, F1, F2>(&self, f1: F1, f2: F2) -> (T1, T2)
    where
        F1: Future<Output = T1>,
        F2: Future<Output = T2>,
    {
        let (mut first, mut second) = (Child::new(f1), Child::new(f2));
        poll_fn(|cx| {
            let _ = (first.poll(cx), second.poll(cx));
            match (&mut first, &mut second) {
                (Child::Done(a), Child::Done(b)) => both(a.take(), b.take()),
                _ => Poll::Pending,
            }
        })
        .await
    }

    /// Waits for all three.
    pub async fn join3<T1, T2, T3, F1, F2, F3>(&self, f1: F1, f2: F2, f3: F3) -> (T1, T2, T3)
    where
        F1: Future<Output = T1>,
        F2: Future<Output = T2>,
        F3: Future<Output = T3>,
    {
        let (one, (two, three)) = self.join2(f1, self.join2(f2, f3)).await;
        (one, two, three)
    }

    /// Waits for the first of two; the other is dropped, which cancels it. Both ready: the first argument wins.
    pub async fn select2<T1, T2, F1, F2>(&self, f1: F1, f2: F2) -> Either2<T1, T2>
    where
        F1: Future<Output = T1>,
        F2: Future<Output = T2>,
    {
        let (mut first, mut second) = (pin!(f1), pin!(f2));
        poll_fn(|cx| {
            if let Poll::Ready(output) = first.as_mut().poll(cx) {
                return Poll::Ready(Either2::First(output));
            }
            second.as_mut().poll(cx).map(Either2::Second)
        })
        .await
    }

    /// Waits for the first of three; the others are dropped, which cancels them.
    pub async fn select3<T1, T2, T3, F1, F2, F3>(&self, f1: F1, f2: F2, f3: F3) -> Either3<T1, T2, T3>
    where
        F1: Future<Output = T1>,
        F2: Future<Output = T2>,
        F3: Future<Output = T3>,
    {
        match self.select2(f1, self.select2(f2, f3)).await {
            Either2::First(output) => Either3::First(output),
            Either2::Second(Either2::First(output)) => Either3::Second(output),
            Either2::Second(Either2::Second(output)) => Either3::Third(output),
        }
    }

    /// Waits for the first of any number: its index and its output. The others are dropped, which cancels them. Several
    /// ready, the lowest index counts. Over no futures the instance fails, because no event could resolve the call.
    #[track_caller]
    pub fn select_all<I>(&self, futures: I) -> impl Future<Output = (usize, <I::Item as Future>::Output)>
    where
        I: IntoIterator,
        I::Item: Future,
    {
        // Not an `async fn`, because `#[track_caller]` has no effect on one.
        let site = Location::caller();
        async move {
            let mut set = FutureSet::new(futures);
            if set.len() == 0 {
                self.lock().violate(format!(
                    "a select over no futures at {site} would wait for ever: give it at least one"
                ));
            }
            poll_fn(|cx| {
                let mut winner = None;
                set.poll(cx, |index, output| {
                    winner = Some((index, output));
                    false
                });
                winner.map_or(Poll::Pending, Poll::Ready)
            })
            .await
        }
    }

    /// Waits for the first of any number: its output. See [`OrchestrationContext::select_all`].
    #[track_caller]
    pub fn race<I>(&self, futures: I) -> impl Future<Output = <I::Item as Future>::Output>
    where
        I: IntoIterator,
        I::Item: Future,
    {
        let winner = self.select_all(futures);
        async move { winner.await.1 }
    }
}

fn both<A, B>(a: Option<A>, b: Option<B>) -> Poll<(A, B)> {
    match (a, b) {
        (Some(a), Some(b)) => Poll::Ready((a, b)),
        _ => Poll::Pending,
    }
}
