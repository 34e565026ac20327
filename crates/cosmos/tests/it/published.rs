//! The public surface of the published provider: paths, signatures and behaviour that programs written for it rely on.

use crate::factory::{fresh_config, quiet_target};
use crate::script::{self, LEASE};
use outlast_cosmos::leases::{InMemoryLeaseProvider, LeaseProvider};
use outlast_cosmos::outbox::OutboxFaultInjector;
use outlast_cosmos::provider::{CosmosDBProvider, CosmosDBProviderConfig};
use outlast_provider::{Provider, ProviderError};
use std::time::Duration;

fn is_cloned_and_shown<T: Clone + std::fmt::Debug>(value: &T) -> String {
    format!("{:?}", value.clone())
}

#[test]
fn every_field_of_the_configuration_can_be_written_and_the_key_is_not_shown() {
    let config = CosmosDBProviderConfig {
        endpoint: "https://name.documents.azure.com".to_string(),
        key: "c2VjcmV0".to_string(),
        database: "database".to_string(),
        container: "container".to_string(),
        orch_concurrency: 4,
        worker_concurrency: 4,
        reconciler_interval: Duration::from_secs(2),
        reconciler_age_threshold: Duration::from_secs(2),
    };
    let shown = is_cloned_and_shown(&config);
    assert!(shown.contains("container") && !shown.contains("c2VjcmV0"), "{shown}");
}

#[test]
fn an_injector_fails_the_given_number_of_deliveries() {
    let injector = OutboxFaultInjector::fail_next(2);
    let answers: Vec<bool> = (0..4).map(|_| injector.should_fail()).collect();
    assert_eq!(answers, [true, true, false, false]);
}

#[test]
fn a_lease_provider_is_a_trait_object_that_hands_out_residue_classes() {
    let leases: Box<dyn LeaseProvider> = Box::new(InMemoryLeaseProvider::new(2));
    let (even, odd): (Vec<u8>, Vec<u8>) = (leases.acquire_slots(0), leases.acquire_slots(1));
    assert!(even.iter().all(|slot| slot % 2 == 0) && odd.iter().all(|slot| slot % 2 == 1));
    assert_eq!((even.len(), odd.len()), (128, 128));
    leases.release_slots(0);
}

#[tokio::test]
async fn each_constructor_opens_the_container_that_it_names() {
    let target = quiet_target().await;
    let config = fresh_config(&target);
    let (endpoint, key) = (config.endpoint.as_str(), config.key.as_str());
    let by_config: Result<CosmosDBProvider, ProviderError> =
        CosmosDBProvider::new_with_config(config.clone()).await;
    let first = by_config.unwrap();
    script::begin(&first).await;
    let second = CosmosDBProvider::new_with_container(endpoint, key, &config.database, &config.container)
        .await
        .unwrap();
    let found = second.fetch_orchestration_item(LEASE, Duration::from_secs(10), None).await.unwrap();
    assert_eq!(found.expect("the start is in the same container").0.instance, "source");
    // `new` opens the container `duroxide` of a database: one of its own, so that no other test has its data.
    let database = format!("database-{}", config.container);
    let third = CosmosDBProvider::new(endpoint, key, &database).await.unwrap();
    assert!(third.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap().is_none());
    script::begin(&third).await;
    let fourth = CosmosDBProvider::new_with_container(endpoint, key, &database, "duroxide").await.unwrap();
    let found = fourth.fetch_orchestration_item(LEASE, Duration::from_secs(10), None).await.unwrap();
    assert_eq!(found.expect("the start is in the container `duroxide`").0.instance, "source");
    third.cleanup().await.unwrap();
    first.cleanup().await.unwrap();
}

#[tokio::test]
#[should_panic(expected = "before the store is cloned")]
async fn an_injector_for_a_cloned_store_panics() {
    let target = quiet_target().await;
    let mut store = CosmosDBProvider::new_with_config(fresh_config(&target)).await.unwrap();
    let _clone = store.clone();
    store.set_outbox_fault_injector(OutboxFaultInjector::fail_next(1));
}
