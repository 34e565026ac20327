//! Waits of a client: the commit that ends them, the time, and the number of reads. Time is paused, so that times are exact.

use super::stores::{Noting, Plain, Silent};
use super::*;
use outlast_runtime::OrchestrationStatus;

const MINUTE: Duration = Duration::from_secs(60);

fn is_send<T: Send>(future: T) -> T {
    future
}

/// Waits for instance "i", which ends after this number of milliseconds. Returns the time at which the wait ended.
async fn wait_for_end(store: &Arc<impl Provider>, after: u64) -> u64 {
    let client = Client::new(Arc::clone(store) as Arc<dyn Provider>);
    let end = async {
        pass(after).await;
        turn(&**store, "i", 1, 1, vec![started(), completed("out")]).await;
    };
    let (waited, ()) = tokio::join!(timed(is_send(client.wait_for_orchestration("i", MINUTE))), end);
    let (status, took) = waited;
    assert!(matches!(status.unwrap(), OrchestrationStatus::Completed { output, .. } if output == "out"));
    took
}

#[tokio::test(start_paused = true)]
async fn a_commit_of_this_process_ends_the_wait_at_once() {
    for after in [0, 1, 7, 249, 1_234] {
        let store = Arc::new(Noting::new());
        assert_eq!(wait_for_end(&store, after).await, after);
        let looks = 2 + after as usize / 250;
        assert_eq!(store.notes.times("read_outcome").len(), looks, "now and then, and when it ended");
        assert_eq!(store.notes.times("read").len(), 0, "no history");
        assert_eq!(store.notes.times("watch for anything").len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn turns_that_do_not_end_the_instance_cause_no_read() {
    let store = Arc::new(Noting::new());
    let client = Client::new(Arc::clone(&store) as Arc<dyn Provider>);
    let go_on = EventKind::OrchestrationContinuedAsNew { input: "next".into() };
    let work = async {
        pass(10).await;
        turn(&*store, "i", 1, 1, vec![started()]).await;
        pass(10).await;
        turn(&*store, "i", 1, 2, vec![go_on]).await;
        pass(10).await;
        turn(&*store, "i", 2, 2, vec![started()]).await;
        turn(&*store, "other", 1, 1, vec![started(), completed("other")]).await;
        pass(10).await;
        turn(&*store, "i", 2, 3, vec![failed("no")]).await;
    };
    let (waited, ()) = tokio::join!(timed(client.wait_for_orchestration_typed::<u32>("i", MINUTE)), work);
    assert_eq!((waited.0.unwrap(), waited.1), (Err("infrastructure:work: no".to_string()), 40));
    assert_eq!(store.notes.times("read_outcome"), [0, 40]);
}

#[tokio::test(start_paused = true)]
async fn a_commit_of_another_process_is_noticed_within_a_quarter_of_a_second() {
    let store = Arc::new(Silent::new());
    assert_eq!(wait_for_end(&store, 600).await, 750);
    assert_eq!(store.notes.times("read_outcome"), [0, 250, 500, 750]);
}

#[tokio::test(start_paused = true)]
async fn without_a_watch_the_poll_interval_grows() {
    let store = Arc::new(Plain::new());
    assert_eq!(wait_for_end(&store, 400).await, 455);
    assert_eq!(store.notes.times("read"), [0, 5, 15, 35, 75, 155, 255, 355, 455]);
}

/// Waits with a timeout of 260 ms for an instance that does not exist.
async fn wait_for_missing(store: &Arc<impl Provider>) -> u64 {
    let client = Client::new(Arc::clone(store) as Arc<dyn Provider>);
    let (result, took) = timed(client.wait_for_orchestration("i", Duration::from_millis(260))).await;
    assert!(matches!(result, Err(ClientError::Timeout)));
    took
}

#[tokio::test(start_paused = true)]
async fn the_last_read_is_at_the_deadline() {
    let store = Arc::new(Noting::new());
    assert_eq!((wait_for_missing(&store).await, store.notes.times("read_outcome")), (260, vec![0, 250, 260]));
    let store = Arc::new(Plain::new());
    let looks = vec![0, 5, 15, 35, 75, 155, 255, 260];
    assert_eq!((wait_for_missing(&store).await, store.notes.times("read")), (260, looks));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_of_zero_reads_once() {
    let store = Arc::new(Noting::new());
    let client = Client::new(Arc::clone(&store) as Arc<dyn Provider>);
    let (result, took) = timed(client.wait_for_orchestration("i", Duration::ZERO)).await;
    assert!(matches!(result, Err(ClientError::Timeout)));
    assert_eq!((took, store.notes.calls()), (0, vec!["read_outcome"]));
    turn(&*store, "i", 1, 1, vec![started(), completed("7")]).await;
    let (result, took) = timed(client.wait_for_orchestration_typed::<u32>("i", Duration::ZERO)).await;
    assert_eq!((result.unwrap(), took), (Ok(7), 0));
}

#[tokio::test(start_paused = true)]
async fn an_infinite_timeout_does_not_overflow() {
    let (store, client) = memory();
    let work = async {
        pass(1_000_000).await;
        turn(&*store, "i", 1, 1, vec![started(), sets("k", "v"), says("s"), completed("out")]).await;
    };
    let (max, endless) = (Duration::MAX, Duration::MAX);
    let (end, change, value, ()) = tokio::join!(
        client.wait_for_orchestration("i", max),
        client.wait_for_status_change("i", 0, endless, max),
        client.wait_for_kv_value("i", "k", max),
        work
    );
    assert_eq!((end.unwrap(), value.unwrap().as_str()), (change.unwrap(), "v"));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_store_ends_the_wait() {
    let store = Arc::new(Noting::new());
    let client = Client::new(Arc::clone(&store) as Arc<dyn Provider>);
    let trouble = async {
        pass(300).await;
        store.notes.break_down("read_outcome");
    };
    let (waited, ()) = tokio::join!(timed(client.wait_for_orchestration("i", MINUTE)), trouble);
    assert_eq!(
        (waited.0.unwrap_err().to_string().as_str(), waited.1),
        ("read_outcome: the disk is away", 500)
    );
}

#[tokio::test]
async fn an_undecodable_output_is_invalid_input() {
    let (store, client) = memory();
    turn(&*store, "i", 1, 1, vec![started(), completed("seven")]).await;
    let text = refusal(client.wait_for_orchestration_typed::<u32>("i", Duration::ZERO).await);
    assert_eq!(text, "decode failed: invalid type: string \"seven\", expected u32");
    let raw = client.wait_for_orchestration_typed::<String>("i", Duration::ZERO).await.unwrap();
    assert_eq!(raw.unwrap(), "seven");
}

mod status_change {
    use super::*;
    use OrchestrationStatus::{Completed, Running};

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_newer_status_ends_the_wait() {
        let store = Arc::new(Noting::new());
        let client = Client::new(Arc::clone(&store) as Arc<dyn Provider>);
        let work = async {
            pass(10).await;
            turn(&*store, "i", 1, 1, vec![started()]).await;
            pass(20).await;
            turn(&*store, "i", 1, 2, vec![says("one")]).await;
            pass(40).await;
            turn(&*store, "i", 1, 3, vec![says("two")]).await;
        };
        let two_changes = async {
            let first = client.wait_for_status_change("i", 0, SECOND, MINUTE);
            let first = timed(is_send(first)).await;
            (first, timed(client.wait_for_status_change("i", 1, SECOND, MINUTE)).await)
        };
        let ((first, second), ()) = tokio::join!(two_changes, work);
        let says = |text: &str, version| Running {
            custom_status: Some(text.into()),
            custom_status_version: version,
        };
        assert_eq!((first.0.unwrap(), first.1), (says("one", 1), 30));
        assert_eq!((second.0.unwrap(), second.1), (says("two", 2), 40));
        assert_eq!(store.notes.times("read"), [0_u64; 0], "no history");
        // A status that is newer already ends the wait at once.
        let (status, took) = timed(client.wait_for_status_change("i", 0, SECOND, MINUTE)).await;
        assert_eq!((status.unwrap(), took), (says("two", 2), 0));
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_instance_ends_the_wait() {
        let (store, client) = memory();
        let work = async {
            pass(10).await;
            turn(&*store, "i", 1, 1, vec![started(), says("one"), completed("out")]).await;
        };
        let (waited, ()) = tokio::join!(timed(client.wait_for_status_change("i", 9, SECOND, MINUTE)), work);
        let done =
            Completed { output: "out".into(), custom_status: Some("one".into()), custom_status_version: 1 };
        assert_eq!((waited.0.unwrap(), waited.1), (done, 10));
    }

    #[tokio::test(start_paused = true)]
    async fn the_status_is_read_at_the_poll_interval() {
        let store = Arc::new(Plain::new());
        let client = Client::new(Arc::clone(&store) as Arc<dyn Provider>);
        turn(&*store, "i", 1, 1, vec![started()]).await;
        let (every, timeout) = (Duration::from_millis(30), Duration::from_millis(70));
        let (result, took) = timed(client.wait_for_status_change("i", 0, every, timeout)).await;
        assert!(matches!(result, Err(ClientError::Timeout)));
        assert_eq!((took, store.notes.times("read")), (70, vec![0, 30, 60, 70]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_poll_interval_of_zero_does_not_spin() {
        let store = Arc::new(Plain::new());
        let client = Client::new(Arc::clone(&store) as Arc<dyn Provider>);
        let timeout = Duration::from_millis(20);
        let (result, took) = timed(client.wait_for_status_change("i", 0, Duration::ZERO, timeout)).await;
        assert!(matches!(result, Err(ClientError::Timeout)));
        assert_eq!((took, store.notes.times("read").len()), (20, 21));
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_of_zero_reads_nothing() {
        let store = Arc::new(Noting::new());
        turn(&*store, "i", 1, 1, vec![started(), says("one"), completed("out")]).await;
        store.notes.forget();
        let client = Client::new(Arc::clone(&store) as Arc<dyn Provider>);
        let result = client.wait_for_status_change("i", 0, SECOND, Duration::ZERO).await;
        assert!(matches!(result, Err(ClientError::Timeout)));
        assert!(store.notes.calls().is_empty());
    }
}
