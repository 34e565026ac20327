//! Outcomes that gather, on a memory store with an instance that waits for activities.

use super::*;
use crate::dispatch::fixture::{core, core_on, fan_out, start};
use crate::dispatch::lease::Kind;
use crate::dispatch::warm::{Kept, Position};
use async_trait::async_trait;
use outlast_engine::TurnInput;
use outlast_memory::MemoryProvider;
use outlast_model::EventKind;
use outlast_provider::{Provider, TagFilter, WorkRequest, forward_provider};
use tokio::time::Instant;

const LEASE: Duration = Duration::from_secs(60);

/// A leased activity.
struct Work {
    lease: Lease,
    member: Member,
    completion: WorkItem,
    now_ms: u64,
}

/// Stores the first turn of an instance that waits for activities, keeps its execution warm, and leases the activities.
async fn lease_activities(core: &Core, count: usize) -> Vec<Work> {
    let store = &core.store;
    store.enqueue_for_orchestrator(start("i"), None).await.unwrap();
    let fetched = store.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap();
    let (_, token, _) = fetched.expect("the start was enqueued");
    let mut execution = fan_out(count);
    let input = TurnInput {
        history: Vec::new(),
        messages: Vec::new(),
        notices: Vec::new(),
        now_ms: 1,
        random: &mut || 0,
        parent_close: core.options.parent_close,
    };
    let output = outlast_engine::run(&mut execution, input);
    store.commit_turn(&token, output.commit).await.unwrap();
    let position = Position { execution_id: 1, last_event_id: execution.last_event_id() };
    core.warm.announce(&"i".into(), position, None).confirm(Kept::Suspended(Box::new(execution)), None);
    let request = WorkRequest {
        max_items: count,
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        session: None,
        tag_filter: &TagFilter::default(),
    };
    let mut leased = Vec::new();
    for fetched in store.fetch_work_items(request).await.unwrap() {
        let WorkItem::ActivityExecute { instance, execution_id, id, .. } = fetched.item else {
            panic!("not an activity");
        };
        leased.push(Work {
            lease: core.leases.hold(core, Kind::Activity, fetched.lock_token, "i".into()),
            member: core.gathering.as_ref().unwrap().enter("i".into(), execution_id, id),
            completion: WorkItem::ActivityCompleted { instance, execution_id, id, result: String::new() },
            now_ms: fetched.now_ms.unwrap(),
        });
    }
    assert_eq!(leased.len(), count);
    leased
}

/// Whether the store accepted the outcome together with the others.
async fn gathers(core: &Core, work: Work) -> bool {
    let Work { lease, member, completion, now_ms } = work;
    let instance = Arc::from("i");
    let ready = Ready { lease: &lease, instance: &instance, completion: &completion, now_ms, worker: 0 };
    let accepted = commit(core, member, ready).await;
    lease.settle();
    accepted
}

/// Whether the store accepted each of two outcomes together with the others, when both gather at once.
async fn both_gather(core: &Core, leased: Vec<Work>) -> [bool; 2] {
    let [first, second] = <[Work; 2]>::try_from(leased).ok().expect("there are two");
    let (first, second) = tokio::join!(gathers(core, first), gathers(core, second));
    [first, second]
}

async fn history(core: &Core) -> Vec<EventKind> {
    core.store.read("i").await.unwrap().into_iter().map(|event| event.kind).collect()
}

#[tokio::test(start_paused = true)]
async fn outcomes_of_all_open_activities_are_committed_with_their_turn() {
    let core = core();
    let leased = lease_activities(&core, 2).await;
    assert_eq!(both_gather(&core, leased).await, [true, true]);
    let history = history(&core).await;
    let is_outcome = |kind: &&EventKind| matches!(kind, EventKind::ActivityCompleted { .. });
    assert_eq!(history.iter().filter(is_outcome).count(), 2, "{history:?}");
    assert!(matches!(history.last(), Some(EventKind::OrchestrationCompleted { output }) if output == "2"));
    let waiting = core.store.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap();
    assert!(waiting.is_none(), "no outcome is in the queue");
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_leaves_the_other_outcome_to_be_committed_alone() {
    let core = core();
    let leased = lease_activities(&core, 2).await;
    core.store.abandon_work_item(leased[1].lease.token(), None, false).await.unwrap();
    let token = leased[0].lease.token().to_string();
    assert_eq!(both_gather(&core, leased).await, [false, false]);
    assert_eq!(history(&core).await.len(), 3, "nothing of the turn is stored");
    core.store.ack_work_item(&token, None).await.expect("the lease of the other activity holds");
    assert!(core.run_ahead_backoff.is_in_backoff(&"i".into()));
    assert!(core.warm.open_activities("i", 1, 2).is_none(), "the execution holds uncommitted events");
}

#[tokio::test(start_paused = true)]
async fn an_outcome_waits_for_other_outcomes_for_a_bounded_time() {
    let core = core();
    let mut leased = lease_activities(&core, 2).await;
    let late = leased.pop().unwrap();
    let begun = Instant::now();
    assert!(!gathers(&core, leased.pop().unwrap()).await);
    assert!((LONGEST_WAIT..LONGEST_WAIT * 2).contains(&begun.elapsed()));
    let begun = Instant::now();
    assert!(!gathers(&core, late).await);
    assert_eq!(begun.elapsed(), Duration::ZERO, "the other outcome is no longer waited for");
    assert!(core.warm.open_activities("i", 1, 2).is_some(), "no turn was run");
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_no_other_outcome_can_join_does_not_wait() {
    let begun = Instant::now();
    let alone = core();
    let mut leased = lease_activities(&alone, 1).await;
    assert!(!gathers(&alone, leased.pop().unwrap()).await, "the instance waits for one activity");
    let elsewhere = core();
    let mut leased = lease_activities(&elsewhere, 2).await;
    drop(leased.pop().unwrap().member);
    assert!(!gathers(&elsewhere, leased.pop().unwrap()).await, "another process has the other activity");
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

/// A store that does not commit several outcomes with a turn.
struct OnlyContract(MemoryProvider);

#[async_trait]
impl Provider for OnlyContract {
    forward_provider!(Provider, |this| this.0, except(fuses_outcomes, complete_all_with_turn));
}

/// A store that claims to fuse outcomes, and has only the default of the call, which refuses.
struct Pretends(MemoryProvider);

#[async_trait]
impl Provider for Pretends {
    forward_provider!(Provider, |this| this.0, except(complete_all_with_turn));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_fuse_outcomes_stores_no_outcome() {
    assert!(core_on(Arc::new(OnlyContract(MemoryProvider::new()))).gathering.is_none());
    let core = core_on(Arc::new(Pretends(MemoryProvider::new())));
    let leased = lease_activities(&core, 2).await;
    let token = leased[0].lease.token().to_string();
    assert_eq!(both_gather(&core, leased).await, [false, false]);
    assert_eq!(history(&core).await.len(), 3);
    core.store.ack_work_item(&token, None).await.expect("the lease holds");
    assert!(
        !core.gathering.as_ref().unwrap().may_try("O"),
        "the next outcome of the orchestration does not wait"
    );
}
