//! Time limits of requests.
//!
//! A request ends within the `deadline` of the store. A call under a lease has less time: a request that waited longer than the
//! lease would keep the process from renewing it, and an answer after the end of the lease is useless. So a request has a third of
//! the lease, which leaves time to read whether it was applied and to repeat it, and a call sends no write after a whole lease.
//!
//! The limit is a property of the task that runs the call, so that every request below the call keeps it.

use std::future::Future;
use std::time::Duration;
use tokio::time::Instant;

/// The largest `deadline`: a process that finds a hint, or takes a slot over, waits this long for a write of another process.
pub(crate) const LONGEST: Duration = Duration::from_secs(10);

/// The smallest `deadline`, and the least time of a call: a lease that is shorter ends before an answer can come.
pub(crate) const SHORTEST: Duration = Duration::from_millis(50);

/// A request has at least this time, or the whole lease if that is shorter: the way to the service and back takes a part of it.
const SHORTEST_UNDER_LEASE: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug)]
struct Limit {
    request: Duration,
    /// No write is sent after this time.
    until: Option<Instant>,
}

tokio::task_local! {
    static LIMIT: Limit;
}

/// Runs a call under a lease of this length.
pub(crate) async fn under<T>(lease: Duration, call: impl Future<Output = T>) -> T {
    let lease = lease.max(SHORTEST);
    let until = Instant::now().checked_add(lease);
    scope(Limit { request: request_under(lease), until }, call).await
}

/// Runs a call whose requests end within this time.
pub(crate) async fn within<T>(request: Duration, call: impl Future<Output = T>) -> T {
    scope(Limit { request, until: None }, call).await
}

async fn scope<T>(limit: Limit, call: impl Future<Output = T>) -> T {
    // The futures of calls are large, and the scope would hold them once more on the stack.
    LIMIT.scope(limit, Box::pin(call)).await
}

/// Runs a call under no lease, inside of a call that has one.
pub(crate) async fn free<T>(call: impl Future<Output = T>) -> T {
    within(LONGEST, call).await
}

/// The limit of the next request of this task, if the store has this deadline.
pub(crate) fn of_request(deadline: Duration) -> Duration {
    LIMIT.try_with(|limit| limit.request).unwrap_or(LONGEST).min(deadline)
}

/// Whether the call of this task has time for a write.
pub(crate) fn has_time() -> bool {
    LIMIT.try_with(|limit| limit.until.is_none_or(|until| Instant::now() < until)).unwrap_or(true)
}

fn request_under(lease: Duration) -> Duration {
    (lease / 3).max(lease.min(SHORTEST_UNDER_LEASE))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_request_has_a_third_of_the_lease_and_never_more_than_the_lease() {
        let cases =
            [(60_000, 20_000), (3_000, 1_000), (900, 300), (600, 200), (300, 200), (200, 200), (90, 90)];
        for (lease, request) in cases {
            assert_eq!(request_under(ms(lease)), ms(request), "{lease}");
        }
    }

    #[tokio::test]
    async fn the_shorter_of_deadline_and_lease_counts_and_ends_with_the_call() {
        assert_eq!(of_request(ms(7_000)), ms(7_000));
        under(ms(900), async {
            assert_eq!((of_request(ms(7_000)), of_request(ms(100))), (ms(300), ms(100)));
            assert!(has_time());
            free(async { assert_eq!(of_request(ms(7_000)), ms(7_000)) }).await;
        })
        .await;
        under(Duration::ZERO, async { assert!(has_time() && of_request(LONGEST) == SHORTEST) }).await;
        let over = Limit { request: LONGEST, until: Some(Instant::now()) };
        scope(over, async { assert!(!has_time()) }).await;
        under(Duration::MAX, async { assert!(has_time()) }).await;
        assert_eq!(of_request(ms(7_000)), ms(7_000));
    }
}
