//! Deleting an instance deletes its values; an id that is used again starts without any.

use super::*;
use crate::ProviderFactory;

/// The values of a deleted, finished instance are deleted, for clients and for a new instance of the same id.
pub async fn test_kv_delete_instance_cascades<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut neighbour = Writer::create(provider, "neighbour").await;
    neighbour.end("Completed", &[set("a", "1")]).await;
    let mut deleted = Writer::create(provider, "deleted").await;
    deleted.end("Completed", &[set("a", "1"), set("b", "1")]).await;
    deleted.assert_live(&[("a", Some("1")), ("b", Some("1"))]).await;

    assert_eq!(admin(provider).delete_instance("deleted", false).await.unwrap().instances_deleted, 1);
    deleted.assert_live(&[("a", None), ("b", None)]).await;
    neighbour.assert_live(&[("a", Some("1"))]).await;
    neighbour.assert_snapshot(&[("a", "1")]).await;
    let again = Writer::create(provider, "deleted").await;
    again.assert_snapshot(&[]).await;
    again.assert_live(&[("a", None), ("b", None)]).await;
}

/// Deleting a root deletes the values of its descendants too.
pub async fn test_kv_delete_instance_with_children<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let family = [("root", None), ("child", Some("root")), ("grandchild", Some("child")), ("stranger", None)];
    for (instance, parent) in family {
        match parent {
            Some(parent) => create_instance_with_parent(provider, instance, parent).await,
            None => create_instance(provider, instance).await,
        }
        let mut writer = Writer { provider, instance, execution_id: 1, last_event_id: 1 };
        writer.end("Completed", &[set("a", instance)]).await;
        writer.assert_live(&[("a", Some(instance))]).await;
    }

    assert_eq!(admin(provider).delete_instance("root", false).await.unwrap().instances_deleted, 3);
    for (instance, _) in family {
        let left = (instance == "stranger").then_some(instance);
        assert_live(provider, instance, &[("a", left)]).await;
    }
}

/// The values of a running execution go with the instance: a new one of the same id never sees or inherits them.
pub async fn test_kv_delta_delete_instance_cascades<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut neighbour = Writer::create(provider, "neighbour").await;
    neighbour.turn(&[set("a", "1")]).await;
    let mut deleted = Writer::create(provider, "deleted").await;
    deleted.continue_as_new(&[set("a", "1")]).await;
    deleted.turn(&[set("a", "2"), set("b", "2"), clear("c")]).await;
    deleted.assert_live(&[("a", Some("2")), ("b", Some("2")), ("c", None)]).await;

    assert_eq!(admin(provider).delete_instance("deleted", true).await.unwrap().instances_deleted, 1);
    deleted.assert_live(&[("a", None), ("b", None), ("c", None)]).await;
    neighbour.assert_live(&[("a", Some("1"))]).await;
    let mut again = Writer::create(provider, "deleted").await;
    again.assert_live(&[("a", None), ("b", None), ("c", None)]).await;
    again.end("Completed", &[set("c", "3")]).await;
    again.assert_live(&[("a", None), ("b", None), ("c", Some("3"))]).await;
    again.assert_snapshot(&[("c", "3")]).await;
}
