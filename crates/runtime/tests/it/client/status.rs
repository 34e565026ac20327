//! The status of instances.

use super::stores::{Noting, Plain};
use super::*;
use outlast_runtime::OrchestrationStatus::{self, Completed, Failed, NotFound, Running};

fn running(custom_status: Option<&str>, custom_status_version: u64) -> OrchestrationStatus {
    Running { custom_status: custom_status.map(str::to_string), custom_status_version }
}

/// The status of an instance after these turns, which must be the same with the store's `read_outcome` and with the default method.
async fn status_of(instance: &str, turns: &[(u64, u64, Vec<EventKind>)]) -> OrchestrationStatus {
    let (noting, plain) = (Arc::new(Noting::new()), Arc::new(Plain::new()));
    let stores: [Arc<dyn Provider>; 2] = [Arc::clone(&noting) as _, Arc::clone(&plain) as _];
    let mut found = Vec::new();
    for store in stores {
        for (execution_id, first_id, kinds) in turns {
            turn(&*store, "i", *execution_id, *first_id, kinds.clone()).await;
        }
        found.push(Client::new(store).get_orchestration_status(instance).await.unwrap());
    }
    let looks = ["read_outcome", "read", "get_custom_status"].map(|call| noting.notes.times(call).len());
    assert_eq!(looks, [1, 0, 0], "one look, and no history");
    assert_eq!(plain.notes.times("read").len(), 1, "the default reads it");
    assert_eq!(found[0], found[1]);
    found.remove(0)
}

#[tokio::test]
async fn each_status_is_returned() {
    let first = |kinds: &[EventKind]| vec![(1, 1, [&[started()], kinds].concat())];
    assert_eq!(status_of("missing", &first(&[])).await, NotFound);
    assert_eq!(status_of("i", &first(&[])).await, running(None, 0));
    assert_eq!(status_of("i", &first(&[says("packing")])).await, running(Some("packing"), 1));
    let done =
        Completed { output: "out".into(), custom_status: Some("packed".into()), custom_status_version: 1 };
    assert_eq!(status_of("i", &first(&[says("packed"), completed("out")])).await, done);
    let details = infrastructure("work", "no");
    let lost = Failed { details, custom_status: None, custom_status_version: 0 };
    assert_eq!(status_of("i", &first(&[failed("no")])).await, lost);
}

#[tokio::test]
async fn an_instance_that_continued_as_new_is_running() {
    let go_on = EventKind::OrchestrationContinuedAsNew { input: "next".into() };
    let mut turns = vec![(1, 1, vec![started(), says("round 1"), go_on])];
    assert_eq!(status_of("i", &turns).await, running(Some("round 1"), 1), "between two executions");
    turns.push((2, 2, vec![started()]));
    assert_eq!(status_of("i", &turns).await, running(Some("round 1"), 1));
    turns.push((2, 3, vec![completed("out")]));
    let done =
        Completed { output: "out".into(), custom_status: Some("round 1".into()), custom_status_version: 1 };
    assert_eq!(status_of("i", &turns).await, done);
}

#[tokio::test]
async fn a_queued_start_is_not_found() {
    let (_, client) = memory();
    client.start_orchestration("i", "Order", "").await.unwrap();
    assert_eq!(client.get_orchestration_status("i").await.unwrap(), NotFound);
}

/// C7: the status of an instance that failed because of its history can be read.
#[tokio::test]
async fn an_undecodable_failure_is_reported_by_its_text() {
    let (store, client) = memory();
    turn(&*store, "i", 1, 1, vec![started(), says("s"), failed("no")]).await;
    store.corrupt_history("i");
    let expected = Failed {
        details: infrastructure("read_outcome", "infrastructure:work: no"),
        custom_status: Some("s".into()),
        custom_status_version: 1,
    };
    assert_eq!(client.get_orchestration_status("i").await.unwrap(), expected);
    assert_eq!(client.wait_for_orchestration("i", Duration::ZERO).await.unwrap(), expected);
}

#[tokio::test]
async fn an_error_of_the_store_is_returned() {
    let store = Arc::new(Noting::new());
    store.notes.break_down("read_outcome");
    let error = Client::new(store).get_orchestration_status("i").await.unwrap_err();
    assert_eq!(error.to_string(), "read_outcome: the disk is away");
}

#[test]
fn completed_and_failed_are_terminal() {
    let output = || Completed { output: String::new(), custom_status: None, custom_status_version: 0 };
    assert!(output().is_terminal() && !NotFound.is_terminal() && !running(None, 0).is_terminal());
}
