use super::*;
use crate::dispatch::fixture::{core, start};
use crate::dispatch::lease::Kind;
use outlast_provider::{ReleaseOutcome, TurnRequest};

/// Starts instance `i` of orchestration O and leases its first turn.
async fn leased(core: &Core) -> (FetchedTurn, Lease) {
    core.store.enqueue_for_orchestrator(start("i"), None).await.unwrap();
    fetch(core).await.expect("the start is due")
}

async fn fetch(core: &Core) -> Option<(FetchedTurn, Lease)> {
    let request = TurnRequest {
        lock_timeout: Duration::from_secs(60),
        poll_timeout: Duration::ZERO,
        filter: None,
        with_history: false,
    };
    let turn = core.store.fetch_turn(request).await.unwrap()?;
    let lease = core.leases.hold(core, Kind::Turn, turn.lock_token.clone(), "i".into());
    Some((turn, lease))
}

fn admin(core: &Core) -> &dyn outlast_provider::ProviderAdmin {
    core.store.as_management_capability().unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_turn_of_a_paused_orchestration_becomes_a_hold_and_its_delivery_is_not_counted() {
    let core = core();
    admin(&core).pause_orchestration("O", "ann", "deploy").await.unwrap();
    let (turn, lease) = leased(&core).await;
    assert!(or_hold(&core, &turn, lease).await.is_none());
    let held = admin(&core).held_instance("i").await.unwrap().expect("it is held");
    let expected =
        Hold { kind: HoldKind::OrchestrationPaused, actor: "ann".to_string(), reason: "deploy".to_string() };
    assert_eq!(held.hold, expected);
    assert!(fetch(&core).await.is_none());
    admin(&core).resume_orchestration("O").await.unwrap();
    assert_eq!(admin(&core).release_instance("i").await, Ok(ReleaseOutcome::Released));
    tokio::time::advance(FRESH).await;
    let (turn, lease) = fetch(&core).await.expect("the start is due");
    assert_eq!(turn.attempt_count, 1);
    or_hold(&core, &turn, lease).await.expect("the turn runs").settle();
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_noticed_within_a_second() {
    let core = core();
    assert_eq!(core.paused.standing(&core, "O").await, Standing::Runs);
    admin(&core).pause_orchestration("O", "ann", "").await.unwrap();
    tokio::time::advance(FRESH - Duration::from_millis(1)).await;
    assert_eq!(core.paused.standing(&core, "O").await, Standing::Runs, "what was read is still used");
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(matches!(core.paused.standing(&core, "O").await, Standing::Paused(_)));
    assert_eq!(core.paused.standing(&core, "P").await, Standing::Runs);
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_is_held_after_the_resumption_is_released() {
    let core = core();
    admin(&core).pause_orchestration("O", "ann", "").await.unwrap();
    assert!(matches!(core.paused.standing(&core, "O").await, Standing::Paused(_)));
    // This runtime has not read the resumption, which found no held instance.
    admin(&core).resume_orchestration("O").await.unwrap();
    let (turn, lease) = leased(&core).await;
    assert!(or_hold(&core, &turn, lease).await.is_none());
    assert_eq!(admin(&core).held_instance("i").await, Ok(None));
    let (turn, lease) = fetch(&core).await.expect("the start is due again");
    or_hold(&core, &turn, lease).await.expect("the turn runs").settle();
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_instance_of_a_paused_orchestration_runs_to_its_end() {
    let core = core();
    admin(&core).pause_orchestration("O", "ann", "").await.unwrap();
    let (turn, lease) = leased(&core).await;
    let cancel = outlast_model::WorkItem::CancelInstance { instance: "i".to_string(), reason: String::new() };
    core.store.enqueue_for_orchestrator(cancel, None).await.unwrap();
    or_hold(&core, &turn, lease).await.expect("a request to cancel waits").settle();
    let requested = EventKind::OrchestrationCancelRequested { reason: String::new() };
    let event = outlast_model::Event::at(0, 1, "i", 1, None, requested);
    core.store.append_with_execution("i", 1, vec![event]).await.unwrap();
    assert_eq!(must_end(&core, &FetchedTurn { last_event_id: Some(1), ..turn }).await, Ok(true));
}
