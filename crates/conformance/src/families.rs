//! Parents and children. A store does not interpret the parent link, but parents depend on it: on the link in a start, and on
//! turns of instances that have ended.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::WorkItem;
use outlast_provider::model::AppErrorKind;

/// Instance, scheduling event and execution of a parent.
type Link = Option<(&'static str, u64, Option<u64>)>;

const LINKS: [Link; 3] = [None, Some(("parent", 7, Some(2))), Some(("parent", 7, None))];

/// The item, with this parent.
fn waited_for(mut item: WorkItem, link: Link) -> WorkItem {
    if let WorkItem::StartOrchestration { parent_instance, parent_id, parent_execution_id, .. }
    | WorkItem::ContinueAsNew { parent_instance, parent_id, parent_execution_id, .. } = &mut item
    {
        *parent_instance = link.map(|(instance, ..)| instance.to_string());
        *parent_id = link.map(|(_, event_id, _)| event_id);
        *parent_execution_id = link.and_then(|(.., execution_id)| execution_id);
    }
    item
}

/// The parent link is in the start of an instance and of every successor, and is kept when the start is enqueued, sent by a turn,
/// given back, or delivered again. Without it the parent would not get the outcome.
pub async fn a_start_keeps_its_waiting_parent(factory: &dyn ProviderFactory) {
    for link in LINKS {
        let provider = &*factory.create_provider().await;
        create_instance(provider, "sender").await;
        let start = waited_for(start_item("child"), link);
        let sender = next_turn(provider, "sender").await;
        Turn::new(&sender).message(start.clone()).commit(provider).await;
        let (item, token, _) = must_fetch(provider, LONG).await;
        assert_eq!(item.messages, vec![start.clone()], "sent by a turn");
        provider.abandon_orchestration_item(&token, None, false).await.expect("the lease is live");
        let lease = factory.lock_timeout();
        assert_eq!(must_fetch(provider, lease).await.0.messages, vec![start.clone()], "given back");
        outlive(lease).await;
        let (item, token, _) = must_fetch(provider, LONG).await;
        assert_eq!(item.messages, [start], "delivered again");
        Turn::new(&token).event(started("child")).metadata(named()).commit(provider).await;

        let successor = waited_for(continue_item("child"), link);
        let last = next_turn(provider, "child").await;
        let end = Turn::new(&last).event(event("child", 2, continued_kind("next")));
        end.metadata(status("ContinuedAsNew", "next")).message(successor.clone()).commit(provider).await;
        let (item, token, _) = must_fetch(provider, LONG).await;
        assert_eq!(item.messages, vec![successor.clone()], "the start of a successor");
        provider.abandon_orchestration_item(&token, None, false).await.expect("the lease is live");
        assert_eq!(must_fetch(provider, LONG).await.0.messages, [successor], "given back");

        let enqueued = waited_for(start_item("other"), link);
        enqueue(provider, enqueued.clone()).await;
        assert_eq!(must_fetch(provider, LONG).await.0.messages, [enqueued], "enqueued");
    }
}

/// An instance that has ended is fetched when a message arrives for it: only a turn can send the parent the failure that the id of
/// its child exists.
pub async fn an_ended_instance_is_still_fetched(factory: &dyn ProviderFactory) {
    for state in ["Completed", "Failed"] {
        let provider = &*factory.create_provider().await;
        create_instance(provider, "asker").await;
        create_with(provider, "taken", ended(state, "out", None)).await;
        let messages = [
            waited_for(start_item("taken"), Some(("asker", 3, Some(1)))),
            cancel("taken"),
            completed("taken", 9),
        ];
        enqueue_all(provider, &messages).await;
        let (item, token, attempt) = must_fetch(provider, LONG).await;
        assert_eq!((item.instance.as_str(), item.execution_id, attempt), ("taken", 1, 1), "{state}");
        assert_eq!(item.messages, messages, "{state}");
        let notice = WorkItem::SubOrchFailed {
            parent_instance: "asker".to_string(),
            parent_execution_id: 1,
            parent_id: 3,
            details: failure(AppErrorKind::OrchestrationFailed, "the id is taken"),
        };
        Turn::new(&token).message(notice.clone()).commit(provider).await;
        let (item, token, _) = must_fetch(provider, LONG).await;
        assert_eq!(
            (item.instance.as_str(), item.messages.as_slice()),
            ("asker", [notice].as_slice()),
            "{state}"
        );
        Turn::new(&token).commit(provider).await;
        assert!(fetch(provider, LONG).await.is_none(), "{state}: every message is delivered");
        operator(provider).sees_current("taken", 1, state, Some("out")).await;
    }
}
