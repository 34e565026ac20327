//! Dead letters have numbers, return to their queue, or are dropped, and the audit has a record of each change.

use crate::ProviderFactory;
use crate::support::*;
use futures::future::join3;
use outlast_provider::model::{WorkItem, json};
use outlast_provider::{
    AuditEntry, DeadLetter, DeadLetterOutcome, DeadLetterQueue, DeadLetterRecord, Provider, TagFilter,
};
use std::time::Duration;

const ID: &str = "buried";

fn entry(reason: &str) -> AuditEntry {
    AuditEntry {
        actor: "operator".to_string(),
        action: "dead-letter".to_string(),
        target: ID.to_string(),
        reason: reason.to_string(),
        request: Some("request".to_string()),
        result: "done".to_string(),
    }
}

fn letter(queue: DeadLetterQueue, instance: &str, text: &str) -> DeadLetter {
    DeadLetter {
        queue,
        instance_id: Some(instance.to_string()),
        work_item: text.to_string(),
        reason: "does not decode".to_string(),
        attempt_count: 7,
        dead_at: 1_000,
    }
}

fn letter_of(queue: DeadLetterQueue, item: &WorkItem) -> DeadLetter {
    letter(queue, item.target_instance(), &json::encode_work_item(item).expect("an item has a text"))
}

async fn page(provider: &dyn Provider, before: Option<u64>, limit: usize) -> Vec<DeadLetterRecord> {
    let page = admin(provider).dead_letter_page(before, limit).await.expect("dead_letter_page succeeds");
    page.expect("dead letters have numbers")
}

async fn reasons_in_audit(provider: &dyn Provider) -> Vec<String> {
    let page = admin(provider).audit_page(None, 10).await.expect("audit_page succeeds");
    page.into_iter().flatten().map(|record| record.entry.reason).collect()
}

/// A store with an instance and these dead letters; `None` if the store cannot change dead letters.
async fn store_with(
    factory: &dyn ProviderFactory,
    letters: &[DeadLetter],
) -> Option<(std::sync::Arc<dyn Provider>, Vec<u64>)> {
    let provider = factory.create_provider().await;
    create_instance(&*provider, ID).await;
    let is_supported = admin(&*provider).dead_letter_page(None, 1).await.expect("dead_letter_page succeeds");
    if is_supported.is_none() {
        let outcome = admin(&*provider).requeue_dead_letter(1, &entry("")).await;
        assert_eq!(outcome, Ok(DeadLetterOutcome::Unsupported), "dead letters without numbers stay");
        return None;
    }
    for letter in letters {
        let is_written = factory.write_dead_letter(letter).await;
        assert!(is_written, "a store that requeues dead letters needs the hook write_dead_letter");
    }
    let mut ids: Vec<u64> = page(&*provider, None, 100).await.iter().map(|record| record.id).collect();
    ids.reverse();
    assert_eq!(ids.len(), letters.len());
    Some((provider, ids))
}

/// Dead letters have ascending numbers and are read newest first, page by page.
pub async fn dead_letters_are_paged_by_number(factory: &dyn ProviderFactory) {
    let letters = ["first", "second", "third"].map(|text| letter(DeadLetterQueue::Worker, ID, text));
    let Some((provider, ids)) = store_with(factory, &letters).await else { return };
    assert!(ids[0] < ids[1] && ids[1] < ids[2], "{ids:?}");
    let newest = page(&*provider, None, 2).await;
    let texts = |page: &[DeadLetterRecord]| -> Vec<String> {
        page.iter().map(|record| record.letter.work_item.clone()).collect()
    };
    assert_eq!((texts(&newest), &newest[0].letter), (vec!["third".into(), "second".into()], &letters[2]));
    assert_eq!(texts(&page(&*provider, Some(newest[1].id), 10).await), ["first"]);
    let listed = admin(&*provider).list_dead_letters(10).await.expect("list_dead_letters succeeds");
    let whole = page(&*provider, None, 10).await;
    assert_eq!(listed, whole.into_iter().map(|record| record.letter).collect::<Vec<_>>());
}

/// A requeued message is delivered behind the messages that wait, as its first delivery, and is no dead letter any more.
pub async fn a_requeued_message_is_delivered_as_new(factory: &dyn ProviderFactory) {
    let message = raised(ID, "buried", "data");
    let dead = [letter_of(DeadLetterQueue::Orchestrator, &message)];
    let Some((provider, ids)) = store_with(factory, &dead).await else { return };
    enqueue(&*provider, raised(ID, "waits", "")).await;
    tokio::time::sleep(APART).await;
    let requeue = || async { admin(&*provider).requeue_dead_letter(ids[0], &entry("again")).await };
    assert_eq!(requeue().await, Ok(DeadLetterOutcome::Done));
    assert_eq!(requeue().await, Ok(DeadLetterOutcome::NotFound), "a dead letter returns once");
    assert_eq!(reasons_in_audit(&*provider).await, ["again"]);
    assert_eq!(page(&*provider, None, 10).await, []);
    let (item, token, attempt) = must_fetch(&*provider, LONG).await;
    assert_eq!((item.messages, attempt), (vec![raised(ID, "waits", ""), message], 1));
    Turn::new(&token).commit(&*provider).await;
}

/// A requeued activity is delivered as its first delivery, with the tag of its text.
pub async fn a_requeued_activity_is_delivered_as_new(factory: &dyn ProviderFactory) {
    let plain = activity(ID, 3);
    let tagged = activity_with(ID, 4, None, Some("gpu"));
    let dead = [&plain, &tagged].map(|item| letter_of(DeadLetterQueue::Worker, item));
    let Some((provider, ids)) = store_with(factory, &dead).await else { return };
    for id in &ids {
        let outcome = admin(&*provider).requeue_dead_letter(*id, &entry("again")).await;
        assert_eq!(outcome, Ok(DeadLetterOutcome::Done));
    }
    assert_eq!(drain_activities(&*provider, &TagFilter::DefaultOnly).await, [(plain, 1)]);
    assert_eq!(drain_activities(&*provider, &TagFilter::tags(["gpu"])).await, [(tagged, 1)]);
    assert_eq!((reasons_in_audit(&*provider).await.len(), page(&*provider, None, 10).await.len()), (2, 0));
}

/// A dead letter that does not decode, or belongs to another instance or queue, is not requeued, and the audit has no record of it.
pub async fn an_undeliverable_dead_letter_stays(factory: &dyn ProviderFactory) {
    let text = json::encode_work_item(&raised("another", "e", "")).expect("an item has a text");
    let dead = [
        letter(DeadLetterQueue::Orchestrator, ID, "NOT_VALID_JSON{{{"),
        letter(DeadLetterQueue::Orchestrator, ID, &text),
        letter_of(DeadLetterQueue::Orchestrator, &activity(ID, 3)),
        letter_of(DeadLetterQueue::Worker, &raised(ID, "e", "")),
    ];
    let Some((provider, ids)) = store_with(factory, &dead).await else { return };
    let before = page(&*provider, None, 10).await;
    for id in &ids {
        let outcome = admin(&*provider).requeue_dead_letter(*id, &entry("again")).await;
        let is_refused =
            matches!(&outcome, Ok(DeadLetterOutcome::Undeliverable { reason }) if !reason.is_empty());
        assert!(is_refused, "dead letter {id}: {outcome:?}");
    }
    assert_eq!(page(&*provider, None, 10).await, before, "the dead letters stay");
    assert_eq!(reasons_in_audit(&*provider).await, [""; 0]);
    assert!(fetch(&*provider, LONG).await.is_none() && fetch_activity(&*provider, LONG).await.is_none());
}

/// A dropped dead letter is gone, its neighbours stay, and the audit has a record of the drop.
pub async fn a_dropped_dead_letter_is_gone(factory: &dyn ProviderFactory) {
    let letters = ["first", "second", "third"].map(|text| letter(DeadLetterQueue::Orchestrator, ID, text));
    let Some((provider, ids)) = store_with(factory, &letters).await else { return };
    let remove = || async { admin(&*provider).drop_dead_letter(ids[1], &entry("useless")).await };
    assert_eq!(remove().await, Ok(DeadLetterOutcome::Done));
    assert_eq!(remove().await, Ok(DeadLetterOutcome::NotFound));
    assert_eq!(reasons_in_audit(&*provider).await, ["useless"]);
    let left = page(&*provider, None, 10).await;
    assert_eq!(left.iter().map(|record| record.id).collect::<Vec<_>>(), [ids[2], ids[0]]);
    assert!(fetch(&*provider, LONG).await.is_none(), "a dropped message is not delivered");
}

/// A requeue ends the wait of a parked fetch.
pub async fn a_requeue_ends_the_wait(factory: &dyn ProviderFactory) {
    let message = raised(ID, "buried", "");
    let work = activity(ID, 3);
    let dead =
        [letter_of(DeadLetterQueue::Orchestrator, &message), letter_of(DeadLetterQueue::Worker, &work)];
    let Some((provider, ids)) = store_with(factory, &dead).await else { return };
    let wait = Duration::from_secs(30);
    let tags = TagFilter::default();
    let turn = provider.fetch_orchestration_item(LONG, wait, None);
    let activity = provider.fetch_work_item(LONG, wait, None, &tags);
    let requeue = async {
        tokio::time::sleep(APART).await;
        for id in &ids {
            let outcome = admin(&*provider).requeue_dead_letter(*id, &entry("again")).await;
            assert_eq!(outcome, Ok(DeadLetterOutcome::Done));
        }
    };
    let all = tokio::time::timeout(wait / 2, join3(turn, activity, requeue));
    let (turn, activity, ()) = all.await.expect("the fetches return before they time out");
    let (turn, ..) = turn.expect("the fetch succeeds").expect("a turn");
    assert_eq!(turn.messages, [message]);
    let (item, ..) = activity.expect("the fetch succeeds").expect("an activity");
    assert_eq!(item, work);
}
