//! Fused outcomes: the outcomes of several activities of one instance are committed with the turn that follows from all of them. A
//! store that does not support this writes nothing; no store commits the turn unless every lease holds and the turn follows the
//! stored history.

use crate::ProviderFactory;
use crate::snapshot::snapshot;
use crate::support::*;
use outlast_provider::model::EventKind;
use outlast_provider::{
    ExecutionMetadata, FusedCompletion, Interest, LeasedOutcome, Provider, ProviderError, TagFilter,
    TurnAhead, TurnCommit, WorkItem, WorkRequest,
};
use std::time::Duration;

const ID: &str = "fused";

/// The tokens of activities 2 and 3, and the store's time of the fetch, if the store reports it.
struct Leased {
    tokens: [String; 2],
    now_ms: u64,
}

/// Creates the instance, whose history has three events, and leases its activities 2 and 3.
async fn lease_activities(provider: &dyn Provider, leases: [Duration; 2]) -> Leased {
    let token = first_turn(provider, ID).await;
    let mut turn = Turn::new(&token).event(started(ID)).metadata(named());
    for id in [2, 3] {
        turn = turn.event(event(ID, id, scheduled_kind("Activity"))).activity(activity(ID, id));
    }
    turn.commit(provider).await;
    let mut leased = Leased { tokens: Default::default(), now_ms: 0 };
    for (id, (token, lease)) in (2..).zip(leased.tokens.iter_mut().zip(leases)) {
        let request = WorkRequest {
            max_items: 1,
            lock_timeout: lease,
            poll_timeout: NO_WAIT,
            session: None,
            tag_filter: &TagFilter::default(),
        };
        let fetched = provider.fetch_work_items(request).await.unwrap().pop().expect("there is an activity");
        assert_eq!(fetched.item, activity(ID, id));
        *token = fetched.lock_token;
        leased.now_ms = fetched.now_ms.unwrap_or(0);
    }
    leased
}

/// [`lease_activities`], and waits until one of the two leases has expired.
async fn lease_and_lose(factory: &dyn ProviderFactory, provider: &dyn Provider, lost: usize) -> Leased {
    let mut leases = [LONG, LONG];
    leases[lost] = factory.lock_timeout();
    let leased = lease_activities(provider, leases).await;
    outlive(factory.lock_timeout()).await;
    leased
}

/// The turn of both outcomes, which follows event 3.
fn turn_ahead(ran_at_ms: u64) -> TurnAhead {
    let completed = |event_id, id| {
        let mut completed = event(ID, event_id, EventKind::ActivityCompleted { result: "done".to_string() });
        completed.source_event_id = Some(id);
        completed
    };
    let commit = TurnCommit {
        execution_id: 1,
        history_delta: vec![completed(4, 2), completed(5, 3), event(ID, 6, scheduled_kind("Activity6"))],
        worker_items: vec![activity(ID, 6)],
        orchestrator_items: vec![start_item("other")],
        metadata: ExecutionMetadata::default(),
        cancelled_activities: Vec::new(),
    };
    TurnAhead { after_event_id: 3, ran_at_ms, commit }
}

fn outcomes(tokens: &[String; 2], completions: [WorkItem; 2]) -> Vec<LeasedOutcome> {
    let outcome =
        |(token, completion): (&String, WorkItem)| LeasedOutcome { lock_token: token.clone(), completion };
    tokens.iter().zip(completions).map(outcome).collect()
}

async fn complete_with(
    provider: &dyn Provider,
    leased: &Leased,
    turn: TurnAhead,
) -> Result<FusedCompletion, ProviderError> {
    let outcomes = outcomes(&leased.tokens, [completed(ID, 2), completed(ID, 3)]);
    provider.complete_all_with_turn(outcomes, turn).await
}

async fn complete(provider: &dyn Provider, leased: &Leased) -> Result<FusedCompletion, ProviderError> {
    complete_with(provider, leased, turn_ahead(leased.now_ms)).await
}

/// Makes the call and checks that nothing changed.
async fn assert_unchanged(provider: &dyn Provider, outcomes: Vec<LeasedOutcome>, turn: TurnAhead) {
    let before = snapshot(provider, &[ID]).await;
    match provider.complete_all_with_turn(outcomes, turn).await {
        Ok(FusedCompletion::WithTurn { .. }) => panic!("the turn must not be committed"),
        Ok(FusedCompletion::Unchanged) => {}
        Err(error) => assert!(!error.is_retryable(), "{error}"),
    }
    assert_eq!(snapshot(provider, &[ID]).await, before, "nothing is written");
}

/// The outcomes and their turn are stored together, each once; or nothing is written, and each activity is completed alone.
pub async fn outcomes_are_stored_with_their_turn_or_not_at_all(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let leased = lease_activities(provider, [LONG, LONG]).await;
    let completed_all = complete(provider, &leased).await.expect("live leases");
    let is_stored = completed_all != FusedCompletion::Unchanged;
    assert_eq!(is_stored, provider.fuses_outcomes(), "the store does what it says");
    if is_stored {
        assert_eq!(event_ids(&provider.read(ID).await.unwrap()), [1, 2, 3, 4, 5, 6]);
        assert_eq!(must_fetch_activity(provider, LONG).await.0, activity(ID, 6));
        assert_eq!(must_fetch(provider, LONG).await.0.messages, [start_item("other")]);
    } else {
        assert_eq!(event_ids(&provider.read(ID).await.unwrap()), [1, 2, 3], "nothing of the turn is stored");
        for (id, token) in (2..).zip(&leased.tokens) {
            provider.ack_work_item(token, Some(completed(ID, id))).await.expect("the lease holds");
        }
        assert_eq!(must_fetch(provider, LONG).await.0.messages, [completed(ID, 2), completed(ID, 3)]);
    }
    assert!(fetch_activity(provider, LONG).await.is_none(), "both activities are done");
    assert!(fetch(provider, LONG).await.is_none(), "an outcome is in history or in the queue, not in both");
}

/// After a second call with the same tokens the outcomes and the turn are stored once.
pub async fn outcomes_are_committed_once(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let leased = lease_activities(provider, [LONG, LONG]).await;
    if let FusedCompletion::WithTurn { .. } = complete(provider, &leased).await.expect("live leases") {
        let again = outcomes(&leased.tokens, [completed(ID, 2), completed(ID, 3)]);
        assert_unchanged(provider, again, turn_ahead(leased.now_ms)).await;
        for (id, token) in (2..).zip(&leased.tokens) {
            permanent(provider.ack_work_item(token, Some(completed(ID, id))).await, "a completed activity");
        }
        assert_eq!(event_ids(&provider.read(ID).await.unwrap()), [1, 2, 3, 4, 5, 6]);
    }
}

/// A turn of several outcomes that ends its instance resolves watches and sets the outcome.
pub async fn a_turn_of_several_outcomes_can_end_the_instance(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let leased = lease_activities(provider, [LONG, LONG]).await;
    let mut turn = turn_ahead(leased.now_ms);
    turn.commit.history_delta = vec![event(ID, 4, completed_kind("done"))];
    turn.commit.worker_items.clear();
    turn.commit.metadata = status("Completed", "done");
    let watch = provider.watch_instance(ID, Interest::Ended);
    let answer = complete_with(provider, &leased, turn).await;
    if let FusedCompletion::WithTurn { .. } = answer.expect("live leases") {
        if let Some(watch) = watch {
            tokio::time::timeout(LONG, watch).await.expect("the watch is resolved");
        }
        operator(provider).sees_current(ID, 1, "Completed", Some("done")).await;
    }
}

/// If one of the leases is lost, nothing is written: another worker has the activity. The other activity is completed alone.
pub async fn a_lost_lease_stores_no_turn_of_the_others(factory: &dyn ProviderFactory) {
    for lost in [0, 1] {
        let provider = &*factory.create_provider().await;
        let leased = lease_and_lose(factory, provider, lost).await;
        let (lost_id, kept_id) = if lost == 0 { (2, 3) } else { (3, 2) };
        let (taken_over, token, _) = must_fetch_activity(provider, LONG).await;
        assert_eq!(taken_over, activity(ID, lost_id));
        let both = outcomes(&leased.tokens, [completed(ID, 2), completed(ID, 3)]);
        assert_unchanged(provider, both, turn_ahead(leased.now_ms)).await;
        let kept = provider.ack_work_item(&leased.tokens[1 - lost], Some(completed(ID, kept_id))).await;
        kept.expect("the other lease holds");
        provider.ack_work_item(&token, Some(completed(ID, lost_id))).await.expect("the new lease completes");
        let messages = must_fetch(provider, LONG).await.0.messages;
        assert_eq!(messages, [completed(ID, kept_id), completed(ID, lost_id)]);
    }
}

/// An expired lease that no other worker has taken over is lost too.
pub async fn an_expired_lease_stores_no_turn_of_the_others(factory: &dyn ProviderFactory) {
    for lost in [0, 1] {
        let provider = &*factory.create_provider().await;
        let leased = lease_and_lose(factory, provider, lost).await;
        let both = outcomes(&leased.tokens, [completed(ID, 2), completed(ID, 3)]);
        assert_unchanged(provider, both, turn_ahead(leased.now_ms)).await;
    }
}

/// Two outcomes of one activity are not those of two activities.
pub async fn one_lease_is_not_two(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let leased = lease_activities(provider, [LONG, LONG]).await;
    let tokens = [leased.tokens[0].clone(), leased.tokens[0].clone()];
    let twice = outcomes(&tokens, [completed(ID, 2), completed(ID, 2)]);
    assert_unchanged(provider, twice, turn_ahead(leased.now_ms)).await;
}

/// The turn is not stored if a message came before the outcomes, which are delivered after it.
pub async fn outcomes_do_not_overtake_older_messages(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let leased = lease_activities(provider, [LONG, LONG]).await;
    enqueue(provider, raised(ID, "progress", "1")).await;
    let both = outcomes(&leased.tokens, [completed(ID, 2), completed(ID, 3)]);
    assert_unchanged(provider, both, turn_ahead(leased.now_ms)).await;
}

/// The turn is not stored while the instance is under a lease, and not at another position or another time.
pub async fn a_turn_that_does_not_follow_is_not_stored(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let leased = lease_activities(provider, [LONG, LONG]).await;
    let both = || outcomes(&leased.tokens, [completed(ID, 2), completed(ID, 3)]);
    let early = TurnAhead { after_event_id: 2, ..turn_ahead(leased.now_ms) };
    assert_unchanged(provider, both(), early).await;
    assert_unchanged(provider, both(), turn_ahead(leased.now_ms + 3_600_000)).await;
    enqueue(provider, raised(ID, "progress", "1")).await;
    let (_, token, _) = must_fetch(provider, LONG).await;
    assert_unchanged(provider, both(), turn_ahead(leased.now_ms)).await;
    Turn::new(&token).event(event(ID, 4, custom_status_kind(Some("half")))).commit(provider).await;
    assert_unchanged(provider, both(), turn_ahead(leased.now_ms)).await;
}

/// A malformed turn or list of outcomes changes nothing.
pub async fn malformed_outcomes_change_nothing(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let leased = lease_activities(provider, [LONG, LONG]).await;
    let turn = || turn_ahead(leased.now_ms);
    assert_unchanged(provider, Vec::new(), turn()).await;
    let of_two = outcomes(&leased.tokens, [completed(ID, 2), completed("other", 3)]);
    assert_unchanged(provider, of_two, turn()).await;
    let no_outcome = outcomes(&leased.tokens, [completed(ID, 2), activity(ID, 3)]);
    assert_unchanged(provider, no_outcome, turn()).await;
    let both = outcomes(&leased.tokens, [completed(ID, 2), completed(ID, 3)]);
    let mut malformed = turn();
    malformed.commit.history_delta[1].event_id = 4;
    assert_unchanged(provider, both, malformed).await;
}
