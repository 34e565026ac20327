//! A dispatcher names the versions that it can replay; an execution pinned to another version is skipped unchanged.

use crate::ProviderFactory;
use crate::support::*;
use futures::future::join_all;
use outlast_provider::model::{ErrorDetails, EventKind, PoisonMessageType};
use outlast_provider::{ExecutionMetadata, OrchestrationItem, Provider};
use semver::Version;
use std::collections::BTreeSet;
use std::time::Duration;

type Numbers = (u64, u64, u64);
type Range = (Numbers, Numbers);

const V1: Range = ((1, 0, 0), (1, 9, 9));
const V2: Range = ((2, 0, 0), (2, 9, 9));
const V3: Range = ((3, 0, 0), (3, 9, 9));
const EVERYTHING: Range = ((0, 0, 0), (999, 0, 0));
/// A lease that repeated deliveries run on.
const SHORT: Duration = Duration::from_millis(50);

fn version((major, minor, patch): Numbers) -> Version {
    Version::new(major, minor, patch)
}

fn pin(numbers: Numbers) -> ExecutionMetadata {
    ExecutionMetadata { pinned_duroxide_version: Some(version(numbers)), ..ExecutionMetadata::default() }
}

/// Name, version and pin, as a first turn sends them.
fn named_and(pinned: Option<Numbers>) -> ExecutionMetadata {
    ExecutionMetadata { pinned_duroxide_version: pinned.map(version), ..named() }
}

/// Fetches as a dispatcher that supports these ranges.
async fn fetch_for(provider: &dyn Provider, ranges: &[Range]) -> Option<(OrchestrationItem, String, u32)> {
    let filter = supporting(ranges.iter().map(|(min, max)| (version(*min), version(*max))));
    let fetched = provider.fetch_orchestration_item(LONG, NO_WAIT, Some(&filter)).await;
    fetched.expect("a filtered fetch succeeds")
}

/// The instance that such a dispatcher gets.
async fn served(provider: &dyn Provider, ranges: &[Range]) -> Option<String> {
    fetch_for(provider, ranges).await.map(|(item, _, _)| item.instance)
}

/// Creates the instances, pinned or not, and leaves one message waiting for each, in this order.
async fn waiting(provider: &dyn Provider, instances: &[(&str, Option<Numbers>)]) {
    for (instance, numbers) in instances {
        create_with(provider, instance, named_and(*numbers)).await;
    }
    for (instance, _) in instances {
        poke(provider, instance).await;
    }
}

/// Checks, with a message that it consumes, that the instance's current execution is pinned to exactly this version.
async fn assert_pinned(provider: &dyn Provider, instance: &str, execution_id: u64, numbers: Numbers) {
    poke(provider, instance).await;
    let (major, minor, patch) = numbers;
    let below = ((0, 0, 0), (major, minor, patch - 1));
    let above = ((major, minor, patch + 1), (999, 0, 0));
    for others in [below, above] {
        assert_eq!(served(provider, &[others]).await, None, "pinned to {numbers:?}, outside of {others:?}");
    }
    let (item, token, attempt) =
        fetch_for(provider, &[(numbers, numbers)]).await.expect("served to the pinned version");
    assert_eq!((item.instance.as_str(), item.execution_id, attempt), (instance, execution_id, 1));
    Turn::new(&token).execution(execution_id).commit(provider).await;
}

/// Without a filter every instance is fetched, with any pin.
pub async fn test_fetch_with_filter_none_returns_any_item<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    waiting(provider, &[("old", Some((0, 0, 1))), ("far", Some((99, 0, 0))), ("unpinned", None)]).await;
    for expected in ["old", "far", "unpinned"] {
        let (item, _, attempt) = must_fetch(provider, LONG).await;
        assert_eq!((item.instance.as_str(), attempt), (expected, 1));
    }
}

/// An instance pinned inside the range is served in full.
pub async fn test_fetch_with_compatible_filter_returns_item<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    waiting(provider, &[("fits", Some((1, 5, 0)))]).await;
    let (item, token, attempt) = fetch_for(provider, &[V1]).await.expect("1.5.0 is supported");
    assert_eq!((item.instance.as_str(), item.execution_id, attempt), ("fits", 1, 1));
    assert_eq!((item.orchestration_name.as_str(), item.version.as_str()), ("TestOrch", "1.0.0"));
    assert_eq!(item.history, provider.read("fits").await.unwrap());
    assert_eq!((item.history.len(), item.history_error), (1, None));
    assert_eq!(item.messages, [raised("fits", "poke", "")]);

    assert_eq!(served(provider, &[V1]).await, None, "a filtered fetch takes the lease");
    Turn::new(&token).commit(provider).await;
    assert!(fetch(provider, LONG).await.is_none(), "the commit consumed the message");
}

/// An instance pinned outside the range stays in the queue, uncounted.
pub async fn test_fetch_with_incompatible_filter_skips_item<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    waiting(provider, &[("other", Some((2, 0, 0)))]).await;
    for unfit in [V1, V3] {
        assert_eq!(served(provider, &[unfit]).await, None, "2.0.0 is not in {unfit:?}");
    }
    let (item, _, attempt) = must_fetch(provider, LONG).await;
    assert_eq!((item.instance.as_str(), attempt), ("other", 1), "what was skipped was not delivered");
}

/// Any number of unsupported instances at the head of the queue does not hide a supported one behind them.
pub async fn test_fetch_filter_skips_incompatible_selects_compatible<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let ahead: Vec<String> = (0..25).map(|n| format!("ahead-{n:02}")).collect();
    let mut queue: Vec<(&str, Option<Numbers>)> =
        ahead.iter().map(|instance| (instance.as_str(), Some((2, 0, 0)))).collect();
    queue.push(("behind", Some((1, 0, 0))));
    waiting(provider, &queue).await;

    assert_eq!(served(provider, &[V1]).await.as_deref(), Some("behind"));
    assert_eq!(served(provider, &[V1]).await, None, "nothing else fits");
    assert_eq!(served(provider, &[V2]).await.as_deref(), Some("ahead-00"), "the others kept their places");
}

/// A skipped instance is not locked: the next dispatcher that supports it gets it at once.
pub async fn test_fetch_filter_does_not_lock_skipped_instances<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    waiting(provider, &[("skipped", Some((2, 0, 0))), ("taken", Some((1, 0, 0)))]).await;
    assert_eq!(served(provider, &[V1]).await.as_deref(), Some("taken"));
    assert_eq!(served(provider, &[V1]).await, None);

    let (item, token, attempt) = fetch_for(provider, &[V2]).await.expect("the skipped instance is free");
    assert_eq!((item.instance.as_str(), attempt), ("skipped", 1));
    Turn::new(&token).commit(provider).await;
}

/// An execution without a pin is served to every dispatcher, and so is an instance that has no row yet.
pub async fn test_fetch_filter_null_pinned_version_always_compatible<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_rowless(provider, "rowless").await;
    waiting(provider, &[("pinned", Some((1, 0, 0))), ("unpinned", None)]).await;
    poke(provider, "rowless").await;
    enqueue(provider, start_item("queued")).await;

    for expected in [Some("unpinned"), Some("rowless"), Some("queued"), None] {
        assert_eq!(served(provider, &[V3]).await.as_deref(), expected);
    }
    assert_eq!(served(provider, &[V1]).await.as_deref(), Some("pinned"));
}

/// Both ends of a range belong to it, nothing beyond does, and versions compare number by number.
pub async fn test_fetch_filter_boundary_versions<F: ProviderFactory>(factory: &F) {
    let range = ((1, 2, 3), (2, 3, 4));
    let many_patches = ((0, 1, 0), (0, 1, 1500));
    let cases = [
        (range, (1, 2, 3), true),
        (range, (2, 3, 4), true),
        (range, (1, 2, 2), false),
        (range, (2, 3, 5), false),
        (range, (0, 9, 9), false),
        (range, (2, 4, 0), false),
        // Lost where each number is compared on its own.
        (range, (1, 3, 0), true),
        (range, (2, 0, 9), true),
        // Misplaced where versions are compared as text.
        (range, (1, 10, 0), true),
        (range, (10, 0, 0), false),
        // Misplaced where a version is packed into thousands.
        (many_patches, (0, 1, 1500), true),
        (many_patches, (0, 2, 0), false),
    ];
    for (range, numbers, fits) in cases {
        let provider = &*factory.create_provider().await;
        waiting(provider, &[("edge", Some(numbers))]).await;
        let got = served(provider, &[range]).await;
        assert_eq!(got.as_deref(), fits.then_some("edge"), "{numbers:?} against {range:?}");
        if !fits {
            assert_eq!(served(provider, &[EVERYTHING]).await.as_deref(), Some("edge"));
        }
    }
}

/// Filters compare with the pin of the first commit.
pub async fn test_pinned_version_stored_via_ack_metadata<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    for (instance, numbers) in [("one", (1, 2, 3)), ("two", (4, 5, 6))] {
        create_with(provider, instance, named_and(Some(numbers))).await;
        assert_pinned(provider, instance, 1, numbers).await;
    }
}

/// Later commits without a pin do not change it.
pub async fn test_pinned_version_immutable_across_ack_cycles<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_with(provider, "kept", named_and(Some((1, 2, 3)))).await;
    let later = [ExecutionMetadata::default(), named(), status("Running", ""), status("Completed", "done")];
    for (metadata, event_id) in later.into_iter().zip(2..) {
        let token = next_turn(provider, "kept").await;
        let work = event("kept", event_id, scheduled_kind("Work"));
        Turn::new(&token).event(work).metadata(metadata).commit(provider).await;
    }
    operator(provider).sees_current("kept", 1, "Completed", Some("done")).await;
    assert_pinned(provider, "kept", 1, (1, 2, 3)).await;
}

/// Each execution has its own pin; the current one's counts.
pub async fn test_continue_as_new_execution_gets_own_pinned_version<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_with(provider, "actor", named_and(Some((1, 0, 1)))).await;
    set_status(provider, "actor", 1, "ContinuedAsNew", "{}").await;
    assert_pinned(provider, "actor", 1, (1, 0, 1)).await;

    for (execution_id, pinned) in [(2, Some((2, 0, 1))), (3, None)] {
        let token = next_turn(provider, "actor").await;
        let turn = Turn::new(&token).execution(execution_id).event(started_in("actor", execution_id));
        turn.metadata(named_and(pinned)).commit(provider).await;
        if let Some(numbers) = pinned {
            assert_pinned(provider, "actor", execution_id, numbers).await;
        }
    }
    poke(provider, "actor").await;
    let (item, _, _) = fetch_for(provider, &[V3]).await.expect("an unpinned execution inherits no pin");
    assert_eq!((item.instance.as_str(), item.execution_id), ("actor", 3));
}

/// A dispatcher that supports nothing gets nothing, not even an instance without a pin.
pub async fn test_filter_with_empty_supported_versions_returns_nothing<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    waiting(provider, &[("pinned", Some((1, 0, 0))), ("unpinned", None)]).await;
    enqueue(provider, start_item("queued")).await;
    assert_eq!(served(provider, &[]).await, None);
    for expected in ["pinned", "unpinned", "queued"] {
        let (item, _, attempt) = must_fetch(provider, LONG).await;
        assert_eq!((item.instance.as_str(), attempt), (expected, 1), "the empty filter touched nothing");
    }
}

/// Dispatchers that fetch with a filter at the same time never share an instance and never get an unsupported one.
pub async fn test_concurrent_filtered_fetch_no_double_lock<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let names: Vec<String> = (0..10).map(|n| format!("racer-{n}")).collect();
    let queue: Vec<(&str, Option<Numbers>)> =
        names.iter().zip(0..).map(|(name, n)| (name.as_str(), Some((1 + n % 2, 0, 0)))).collect();
    waiting(provider, &queue).await;

    let mut fetched = join_all((0..10).map(|_| fetch_for(provider, &[V1]))).await;
    // A fetch that loses a race may return nothing; the remaining instances can be fetched.
    for _ in 0..6 {
        fetched.push(fetch_for(provider, &[V1]).await);
    }
    let fetched: Vec<_> = fetched.into_iter().flatten().collect();
    let mut instances: Vec<&str> = fetched.iter().map(|(item, _, _)| item.instance.as_str()).collect();
    instances.sort_unstable();
    assert_eq!(instances, ["racer-0", "racer-2", "racer-4", "racer-6", "racer-8"]);
    let tokens: BTreeSet<&str> = fetched.iter().map(|(_, token, _)| token.as_str()).collect();
    assert_eq!(tokens.len(), 5, "each lease has its own token");
    poke(provider, "racer-0").await;
    assert_eq!(served(provider, &[V1]).await, None, "the lease covers what arrives later");
}

/// A pin can be added to an execution that began without one.
pub async fn test_ack_stores_pinned_version_via_metadata_update<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    waiting(provider, &[("late", None)]).await;
    let (_, token, _) =
        fetch_for(provider, &[V3]).await.expect("an execution without a pin is served to all");
    Turn::new(&token).metadata(pin((1, 2, 3))).commit(provider).await;
    assert_pinned(provider, "late", 1, (1, 2, 3)).await;
}

/// A commit that names a pin replaces the old one, upwards or downwards.
pub async fn test_provider_updates_pinned_version_when_told<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "moved").await;
    for numbers in [(1, 0, 1), (2, 0, 1), (1, 5, 1)] {
        let token = next_turn(provider, "moved").await;
        Turn::new(&token).metadata(pin(numbers)).commit(provider).await;
        assert_pinned(provider, "moved", 1, numbers).await;
    }
}

/// Fetches an instance whose history is damaged: the lease is held, the messages are there, the history is not.
async fn fetch_damaged(provider: &dyn Provider, instance: &str, lease: Duration) -> (String, u32) {
    let (item, token, attempt) = must_fetch(provider, lease).await;
    assert_damaged(&item, instance);
    (token, attempt)
}

fn assert_damaged(item: &OrchestrationItem, instance: &str) {
    assert_eq!(item.instance, instance);
    assert!(item.history_error.as_ref().is_some_and(|text| !text.is_empty()), "the damage is reported");
    assert!(item.history.is_empty(), "no part of a damaged history is delivered");
    assert_eq!(item.messages, [raised(instance, "poke", "")]);
}

async fn abandon(provider: &dyn Provider, token: &str) {
    provider.abandon_orchestration_item(token, None, false).await.expect("a current lease can be abandoned");
}

/// A damaged history does not matter to a dispatcher that the pin excludes; any other gets the turn and the error.
pub async fn test_fetch_corrupted_history_filtered_vs_unfiltered<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    waiting(provider, &[("broken", Some((2, 0, 0)))]).await;
    factory.corrupt_instance_history("broken").await;
    assert_eq!(served(provider, &[V1]).await, None);

    let (token, attempt) = fetch_damaged(provider, "broken", LONG).await;
    assert_eq!(attempt, 1, "the excluded dispatcher's fetch was no delivery");
    assert!(fetch(provider, LONG).await.is_none(), "the damaged turn is under a lease");
    abandon(provider, &token).await;

    let (item, _, attempt) = fetch_for(provider, &[V2]).await.expect("2.0.0 is supported");
    assert_damaged(&item, "broken");
    assert_eq!(attempt, 2);
}

/// Every delivery of a damaged instance counts, whether it is given back or its lease runs out.
pub async fn test_fetch_deserialization_error_increments_attempt_count<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    waiting(provider, &[("broken", Some((1, 0, 0)))]).await;
    factory.corrupt_instance_history("broken").await;
    for expected in 1..=3 {
        let (token, attempt) = fetch_damaged(provider, "broken", SHORT).await;
        abandon(provider, &token).await;
        assert_eq!((attempt, factory.get_max_attempt_count("broken").await), (expected, expected));
    }
    assert_eq!(fetch_damaged(provider, "broken", SHORT).await.1, 4);
    outlive(SHORT).await;
    assert_eq!(fetch_damaged(provider, "broken", LONG).await.1, 5);
}

/// The count of a damaged instance passes any limit, so that the runtime can declare it poisoned.
pub async fn test_fetch_deserialization_error_eventually_reaches_poison<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    waiting(provider, &[("broken", None)]).await;
    factory.corrupt_instance_history("broken").await;
    let default_limit = 10;
    for expected in 1..=default_limit + 1 {
        let (token, attempt) = fetch_damaged(provider, "broken", SHORT).await;
        assert_eq!(attempt, expected);
        abandon(provider, &token).await;
    }
    assert_eq!(factory.get_max_attempt_count("broken").await, default_limit + 1);
}

/// The filter checks the pin before the history is decoded, so a damaged instance does not delay others.
pub async fn test_fetch_filter_applied_before_history_deserialization<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    waiting(provider, &[("broken", Some((1, 0, 0))), ("healthy", Some((2, 0, 0)))]).await;
    factory.corrupt_instance_history("broken").await;

    let (item, _, _) = fetch_for(provider, &[V2]).await.expect("the healthy instance is served");
    assert_eq!((item.instance.as_str(), item.history_error), ("healthy", None));
    assert_eq!(item.history, provider.read("healthy").await.unwrap());
    assert_eq!(served(provider, &[V2]).await, None);
    assert_eq!(fetch_damaged(provider, "broken", LONG).await.1, 1, "skipping did not count as a delivery");
}

/// Of several ranges at least the first is used, and versions between the ranges are not supported.
pub async fn test_fetch_single_range_only_uses_first_range<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let queue = [("between", Some((2, 5, 0))), ("first", Some((1, 5, 0))), ("second", Some((3, 5, 0)))];
    waiting(provider, &queue).await;
    // A store may ignore later ranges, so the oldest supported instance is always in the first one.
    for expected in 1..=2 {
        let (item, token, attempt) = fetch_for(provider, &[V1, V3]).await.expect("1.5.0 is supported");
        assert_eq!((item.instance.as_str(), attempt), ("first", expected));
        abandon(provider, &token).await;
    }
    assert_eq!(served(provider, &[V2]).await.as_deref(), Some("between"), "it was there all the time");
}

/// An event and a status can be committed to a damaged history, so that the instance can be failed.
pub async fn test_ack_appends_event_to_corrupted_history<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    waiting(provider, &[("broken", None)]).await;
    factory.corrupt_instance_history("broken").await;
    let (token, attempt_count) = fetch_damaged(provider, "broken", LONG).await;

    let message_type = PoisonMessageType::FailedDeserialization {
        instance: "broken".to_string(),
        execution_id: 1,
        error: "undecodable".to_string(),
    };
    let details = ErrorDetails::Poison {
        attempt_count,
        max_attempts: 0,
        message_type,
        message: "poisoned".to_string(),
    };
    let failed = event("broken", 99999, EventKind::OrchestrationFailed { details });
    Turn::new(&token).event(failed).metadata(status("Failed", "poisoned")).commit(provider).await;

    operator(provider).sees_current("broken", 1, "Failed", Some("poisoned")).await;
    if let Some(admin) = provider.as_management_capability() {
        let execution = admin.get_execution_info("broken", 1).await.unwrap();
        assert_eq!(execution.event_count, 2, "the damaged event and the last one are stored");
    }
    permanent(provider.read("broken").await, "reading a history that is still damaged");
    assert!(fetch(provider, LONG).await.is_none(), "the commit consumed the message");
}
