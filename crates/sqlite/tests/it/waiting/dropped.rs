//! Fetches that their callers drop.

use super::*;

async fn yields(n: u64) {
    for _ in 0..n {
        yield_now().await;
    }
}

/// The token of a turn, or of an activity.
async fn fetch_either(provider: &SqliteProvider, of_turn: bool, poll: Duration) -> Option<String> {
    match of_turn {
        true => provider.fetch_orchestration_item(LONG, poll, None).await.unwrap().map(|(_, token, _)| token),
        false => provider.fetch_work_item(LONG, poll, None, &ANY).await.unwrap().map(|(_, token, _)| token),
    }
}

/// Drops a fetch at some point. If the fetch was answered before, gives its lease back.
async fn dropped_fetch(provider: Arc<SqliteProvider>, kind: u64, (polls, pause): (u64, Duration)) {
    let of_turn = kind & 1 == 0;
    let mut fetch =
        Box::pin(fetch_either(&provider, of_turn, if kind & 2 == 0 { NO_WAIT } else { PATIENCE }));
    let answer = match kind & 4 == 0 {
        // The caller drops the fetch while it polls for the answer.
        true => tokio::select! {
            biased;
            () = yields(polls) => None,
            token = &mut fetch => token,
        },
        // The caller polls once and pauses, so that the answer may have arrived when it drops the fetch.
        false => {
            let at_once = timeout(NO_WAIT, &mut fetch).await.ok().flatten();
            let _ = timeout(pause, std::future::pending::<()>()).await;
            at_once
        }
    };
    drop(fetch);
    match (answer, of_turn) {
        (Some(token), true) => provider.abandon_orchestration_item(&token, None, true).await.unwrap(),
        (Some(token), false) => provider.abandon_work_item(&token, None, true).await.unwrap(),
        (None, _) => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_fetches_leave_no_lease() {
    const ITEMS: usize = 20;
    let (_folder, path) = fresh();
    let provider = Arc::new(open(&path).await);
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for n in 0..ITEMS as u64 {
        provider.enqueue_for_orchestrator(start(&format!("i{n}")), None).await.unwrap();
        provider.enqueue_for_worker(activity("w", n)).await.unwrap();
    }
    let loads = [load(&provider, 2, tagged_work), load(&provider, 2, |n| start(&format!("later{n}")))];
    for n in 0..200 {
        let mut wave = JoinSet::new();
        for _ in 0..1 + n % 8 {
            let points = (random.below(400), Duration::from_millis(random.below(8)));
            wave.spawn(dropped_fetch(Arc::clone(&provider), random.below(8), points));
        }
        wave.join_all().await;
    }
    drop(loads);
    for _ in 0..ITEMS {
        assert_eq!(turn(&*provider).await.2, 1, "a delivery to a dropped fetch is not counted");
        assert_eq!(work(&*provider).await.2, 1, "a delivery to a dropped fetch is not counted");
    }
    assert!(provider.fetch_orchestration_item(LONG, NO_WAIT, None).await.unwrap().is_none());
    assert!(provider.fetch_work_item(LONG, NO_WAIT, None, &ANY).await.unwrap().is_none());
    assert_eq!(count(&path, "SELECT count(*) FROM instance_locks"), ITEMS as i64);
    assert_eq!(count(&path, "SELECT count(*) FROM worker_queue WHERE lock_token IS NOT NULL"), ITEMS as i64);
}
