//! C4: a retryable error of a renewal neither cancels an activity nor loses it.

use crate::support::{CallHook, Cluster, Fault, Kind, Node, activities, calls, pass};
use outlast::ActivityContext;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// An activity of 100 s that ends at once when it is cancelled, with a lease of 30 s.
fn long_work(runs: &Arc<AtomicUsize>) -> Node {
    let runs = Arc::clone(runs);
    let work = activities().register("Long", move |ctx: ActivityContext, _: String| {
        let runs = Arc::clone(&runs);
        async move {
            runs.fetch_add(1, SeqCst);
            tokio::select! {
                biased;
                () = ctx.cancelled() => Err("told to stop".to_string()),
                () = pass(Duration::from_secs(100)) => Ok(format!("attempt {}", ctx.attempt())),
            }
        }
    });
    Node::new(calls("Long"), work)
}

#[tokio::test(start_paused = true)]
async fn c04_retryable_errors_of_renewals_are_retried() {
    let (cluster, runs) = (Cluster::paused(Kind::Memory).await, Arc::default());
    // Each renewal fails twice before it succeeds.
    let hook = CallHook::new(|call, nth| match call {
        "renew_work_item_lock" if nth % 3 != 2 => Fault::Transient,
        _ => Fault::None,
    });
    cluster.start_on(hook.around(cluster.store()), &long_work(&runs)).await;
    assert_eq!(cluster.run("i", "Calls", "").await, "attempt 1");
    assert_eq!(runs.load(SeqCst), 1);
    assert!(hook.count("renew_work_item_lock") >= 9, "{}", hook.count("renew_work_item_lock"));
    cluster.end().await;
}

/// If renewals fail or are not answered for longer than the lease, the activity is cancelled and runs again. It is never acknowledged
/// without an outcome, with which the instance would never end.
#[tokio::test(start_paused = true)]
async fn c04_an_activity_with_an_expired_lease_runs_again() {
    for fault in [|| Fault::Transient, || Fault::Permanent, || Fault::Hang] {
        let (cluster, runs) = (Cluster::paused(Kind::Memory).await, Arc::default());
        let broken = Arc::new(AtomicUsize::new(1));
        let repaired = Arc::clone(&broken);
        let hook = CallHook::new(move |call, _| match call {
            "renew_work_item_lock" if broken.load(SeqCst) == 1 => fault(),
            _ => Fault::None,
        });
        cluster.start_on(hook.around(cluster.store()), &long_work(&runs)).await;
        cluster.begin("i", "Calls", "").await;
        pass(Duration::from_secs(50)).await;
        repaired.store(0, SeqCst);
        assert_eq!(cluster.output("i").await, format!("attempt {}", runs.load(SeqCst)));
        assert!(runs.load(SeqCst) >= 2, "the activity was delivered again");
        cluster.end().await;
    }
}
