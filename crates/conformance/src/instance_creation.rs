//! An instance exists after its first commit with name and version, not before.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::{ExecutionMetadata, WorkItem};

/// The instance exists only after the first commit with name and version, and has the version of the commit, not of the start.
pub async fn test_instance_creation_via_metadata<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    enqueue(provider, start_of("created", "TestOrch", Some("9.9.9"))).await;
    operator(provider).sees_instances(&[]).await;
    assert_eq!(
        provider.get_instance_stats("created").await.unwrap(),
        None,
        "a queued start is not an instance"
    );

    let (_, token, _) = must_fetch(provider, factory.lock_timeout()).await;
    Turn::new(&token).event(started("created")).metadata(named()).commit(provider).await;

    operator(provider).sees_instances(&["created"]).await;
    assert!(provider.get_instance_stats("created").await.unwrap().is_some(), "its first commit makes it one");
    poke(provider, "created").await;
    let (item, _, _) = must_fetch(provider, factory.lock_timeout()).await;
    assert_eq!((item.orchestration_name.as_str(), item.version.as_str()), ("TestOrch", "1.0.0"));
}

/// A start is fetchable while no instance exists.
pub async fn test_no_instance_creation_on_enqueue<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    enqueue(provider, start_item("pending")).await;
    operator(provider).sees_instances(&[]).await;
    assert_eq!(provider.get_instance_stats("pending").await.unwrap(), None, "enqueue creates no instance");
    assert!(provider.read("pending").await.unwrap().is_empty(), "enqueue writes no history");

    let (item, _, _) = must_fetch(provider, factory.lock_timeout()).await;
    assert_eq!((item.instance.as_str(), item.orchestration_name.as_str()), ("pending", "TestOrch"));
    assert_eq!((item.execution_id, item.history.len(), item.messages.len()), (1, 0, 1));
}

/// A start without a version is served, and the version that the commit names is stored.
pub async fn test_null_version_handling<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    enqueue(provider, start_of("unversioned", "TestOrch", None)).await;
    let (item, token, _) = must_fetch(provider, factory.lock_timeout()).await;
    assert_eq!(item.version, "unknown", "nothing is stored yet");
    assert!(matches!(&item.messages[0], WorkItem::StartOrchestration { version: None, .. }));

    let metadata = named_as("TestOrch", "2.5.0");
    Turn::new(&token).event(started("unversioned")).metadata(metadata).commit(provider).await;
    operator(provider).sees_name("unversioned", "TestOrch", "2.5.0").await;
    poke(provider, "unversioned").await;
    assert_eq!(must_fetch(provider, LONG).await.0.version, "2.5.0");
}

/// A child start that a parent's commit enqueues creates no instance either; the child's own commit does.
pub async fn test_sub_orchestration_instance_creation<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "parent").await;
    let token = next_turn(provider, "parent").await;
    let mut child = start_item("child");
    if let WorkItem::StartOrchestration { parent_instance, parent_id, .. } = &mut child {
        *parent_instance = Some("parent".to_string());
        *parent_id = Some(2);
    }
    Turn::new(&token).message(child).commit(provider).await;
    operator(provider).sees_instances(&["parent"]).await;
    assert_eq!(provider.get_instance_stats("child").await.unwrap(), None, "a message creates no instance");

    let (item, token, _) = must_fetch(provider, factory.lock_timeout()).await;
    assert_eq!(item.instance, "child");
    let metadata = ExecutionMetadata { parent_instance_id: Some("parent".to_string()), ..named() };
    Turn::new(&token).event(started("child")).metadata(metadata).commit(provider).await;
    operator(provider).sees_only_child("parent", "child").await;
    assert!(provider.get_instance_stats("child").await.unwrap().is_some(), "its own commit does");
}
