//! Items that another store object or process commits to the same file.

use super::*;
use outlast_model::wall_clock_ms;

fn message(data: String) -> WorkItem {
    WorkItem::ExternalRaised { instance: "i".to_string(), name: "event".to_string(), data }
}

/// The delays of 20 messages, from the call that sent each to the return of the fetch that waited for it.
async fn delays(provider: &SqliteProvider) -> Vec<u64> {
    let mut delays = Vec::new();
    while delays.len() < 20 {
        let (item, token, _) = turn(provider).await;
        let now = wall_clock_ms();
        for message in &item.messages {
            let WorkItem::ExternalRaised { data, .. } = message else { panic!("{message:?}") };
            delays.push(now.saturating_sub(data.parse().unwrap()));
        }
        ack(provider, &token, vec![], vec![], named()).await.unwrap();
    }
    delays
}

/// Whether the store noticed the commits of another writer in time.
fn is_soon(who: &str, delays: Vec<u64>) -> bool {
    let (median, worst) = median(delays);
    println!("work from {who}: noticed after {median} ms (median), {worst} ms (worst)");
    median < 60 && worst < 500
}

/// Sends 20 messages, one after the other, with the time of sending.
async fn send(provider: &SqliteProvider) {
    for n in 0..20 {
        // The pause is a fetch that finds no activity. The pauses have different lengths, so that the messages fall between two
        // checks.
        let pause = Duration::from_millis(53 + 7 * n);
        let none = TagFilter::tags(["nobody"]);
        assert!(provider.fetch_work_item(LONG, pause, None, &none).await.unwrap().is_none());
        provider.enqueue_for_orchestrator(message(wall_clock_ms().to_string()), None).await.unwrap();
    }
}

/// A machine that is busy with other programs may spoil one attempt.
const ATTEMPTS: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_of_a_second_store_object_are_noticed_in_time() {
    let _alone = ALONE.lock().await;
    let (_folder, path) = fresh();
    let provider = open(&path).await;
    create(&provider, "i").await;
    let second = Arc::new(open(&path).await);
    for _ in 0..ATTEMPTS {
        let second = Arc::clone(&second);
        let sending = tokio::spawn(async move { send(&second).await });
        let delays = delays(&provider).await;
        sending.await.unwrap();
        if is_soon("a second provider", delays) {
            return;
        }
    }
    panic!("work from a second provider was noticed too late, {ATTEMPTS} times");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_of_a_second_process_are_noticed_in_time() {
    const TEST: &str = "waiting::others::commits_of_a_second_process_are_noticed_in_time";
    if let Some(path) = role(TEST) {
        return send(&open(&path).await).await;
    }
    let _alone = ALONE.lock().await;
    let (_folder, path) = fresh();
    let provider = open(&path).await;
    create(&provider, "i").await;
    for _ in 0..ATTEMPTS {
        let mut second = child(TEST, &path).spawn().unwrap();
        let delays = delays(&provider).await;
        assert!(second.wait().unwrap().success());
        if is_soon("a second process", delays) {
            return;
        }
    }
    panic!("work from a second process was noticed too late, {ATTEMPTS} times");
}

/// A worker leases a turn and an activity and stops; a store whose fetches have been parked since before takes both over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_leases_of_a_lost_worker_are_taken_over_by_an_idle_store() {
    let (_folder, path) = fresh();
    let (idle, lost) = (open(&path).await, open(&path).await);
    let (lease, patience) = (Duration::from_millis(400), Duration::from_secs(20));
    let (short, any) = (Duration::from_millis(60), TagFilter::default());
    assert!(idle.fetch_orchestration_item(LONG, short, None).await.unwrap().is_none());
    assert!(idle.fetch_work_item(LONG, short, None, &any).await.unwrap().is_none());

    let take_and_get_lost = async {
        // The parked fetches are served in the transactions that make the items due, so the idle store never sees the items free.
        let (turn, sent) = tokio::join!(
            biased;
            lost.fetch_orchestration_item(lease, patience, None),
            lost.enqueue_for_orchestrator(start("i"), None)
        );
        let (work, put) = tokio::join!(
            biased;
            lost.fetch_work_item(lease, patience, None, &any),
            lost.enqueue_for_worker(activity("i", 2))
        );
        sent.and(put).unwrap();
        assert!(turn.unwrap().is_some() && work.unwrap().is_some());
    };
    let (turn, work, ()) = tokio::join!(
        idle.fetch_orchestration_item(LONG, patience, None),
        idle.fetch_work_item(LONG, patience, None, &any),
        take_and_get_lost
    );
    let (item, _, attempt) = turn.unwrap().expect("the turn is taken over");
    assert_eq!((item.instance.as_str(), attempt), ("i", 2));
    let (item, _, attempt) = work.unwrap().expect("the activity is taken over");
    assert_eq!((item, attempt), (activity("i", 2), 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_yields_once_after_a_commit_of_another_writer() {
    let (_folder, path) = fresh();
    let first = open(&path).await;
    for n in 0..3 {
        first.enqueue_for_orchestrator(message(n.to_string()), None).await.unwrap();
    }
    assert_eq!(first.stats().yields_to_processes, 0, "no other store has written");
    let second = open(&path).await;
    second.enqueue_for_orchestrator(message(String::new()), None).await.unwrap();
    for n in 0..3 {
        first.enqueue_for_orchestrator(message(n.to_string()), None).await.unwrap();
    }
    assert_eq!(first.stats().yields_to_processes, 1);
}
