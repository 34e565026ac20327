//! Functions and methods as outside code calls them or passes them as values.

use duroxide::providers::{
    DispatcherCapabilityFilter, InstanceTree, ProviderError, SemverRange, TagFilter, current_build_version,
};
use duroxide::{BackoffStrategy, ErrorDetails, Event, EventKind, RetryPolicy};
use semver::Version;
use std::time::Duration;

type Static = &'static str;

#[test]
fn signatures_of_functions_match_the_contract() {
    let _: fn() -> Version = current_build_version;
    let _: fn(&str) -> bool = duroxide::is_auto_generated_sub_orch_id;
    let child: fn(&str, &str) -> String = duroxide::build_child_instance_id;
    assert_eq!((child("p", "sub::2"), child("p", "c")), ("p::sub::2".to_string(), "c".to_string()));
}

/// Constructors take every type that converts into a `String`.
#[test]
fn signatures_of_events_match_the_contract() {
    let _: fn(u64, Static, u64, Option<u64>, EventKind) -> Event = Event::with_event_id;
    let _: fn(u64, String, u64, Option<u64>, EventKind) -> Event = Event::with_event_id;
    let _: fn(u64, &'static String, u64, Option<u64>, EventKind) -> Event = Event::with_event_id;
    let _: fn(Static, u64, Option<u64>, EventKind) -> Event = Event::new;
    let _: fn(&Event) -> u64 = Event::event_id;
    let _: fn(&Event) -> Option<u64> = Event::source_event_id;
    let _: fn(&Event) -> bool = Event::is_terminal;
}

#[test]
fn signatures_of_errors_match_the_contract() {
    let _: fn(&ErrorDetails) -> Static = ErrorDetails::category;
    let _: fn(&ErrorDetails) -> bool = ErrorDetails::is_retryable;
    let _: fn(&ErrorDetails) -> String = ErrorDetails::display_message;
    let _: fn(Static, String) -> ProviderError = ProviderError::retryable;
    let _: fn(String, Static) -> ProviderError = ProviderError::permanent;
    let _: fn(&ProviderError) -> bool = ProviderError::is_retryable;
    let _: fn(&ProviderError) -> ErrorDetails = ProviderError::to_infrastructure_error;
    let _: fn(String) -> ProviderError = ProviderError::from;
    let _: fn(Static) -> ProviderError = ProviderError::from;
    let fails = || -> Result<(), ProviderError> { Err("down")? };
    assert_eq!(fails(), Err(ProviderError::retryable("unknown", "down")));
}

#[test]
fn signatures_of_filters_match_the_contract() {
    let _: fn(Version, Version) -> SemverRange = SemverRange::new;
    let _: fn(&SemverRange, &Version) -> bool = SemverRange::contains;
    let _: fn() -> SemverRange = SemverRange::default_for_current_build;
    let _: fn(&DispatcherCapabilityFilter, &Version) -> bool = DispatcherCapabilityFilter::is_compatible;
    let _: fn() -> DispatcherCapabilityFilter = DispatcherCapabilityFilter::default_for_current_build;
    let _: fn(&TagFilter, Option<&str>) -> bool = TagFilter::matches;
    let _: [fn() -> TagFilter; 3] = [TagFilter::default_only, TagFilter::none, TagFilter::any];
    let _: fn([Static; 2]) -> TagFilter = TagFilter::tags;
    let _: fn(Vec<String>) -> TagFilter = TagFilter::default_and;
    let _ = TagFilter::tags::<Vec<String>, String>;
    let _: fn(&InstanceTree) -> bool = InstanceTree::is_root_only;
    let _: fn(&InstanceTree) -> usize = InstanceTree::size;
}

#[test]
fn signatures_of_retries_match_the_contract() {
    let _: fn(u32) -> RetryPolicy = RetryPolicy::new;
    let _: [fn(RetryPolicy, Duration) -> RetryPolicy; 2] =
        [RetryPolicy::with_timeout, RetryPolicy::with_total_timeout];
    let _: fn(RetryPolicy, BackoffStrategy) -> RetryPolicy = RetryPolicy::with_backoff;
    let _: fn(&RetryPolicy, u32) -> Duration = RetryPolicy::delay_for_attempt;
    let _: fn(&BackoffStrategy, u32) -> Duration = BackoffStrategy::delay_for_attempt;
}

/// A store is shared as a trait object, and can be downcast.
#[test]
fn store_traits_are_object_safe_and_shareable() {
    use duroxide::providers::{ManagementProvider, Provider, ProviderAdmin};
    fn shareable<T: ?Sized + Send + Sync>() {}
    fn downcastable<T: ?Sized + std::any::Any>() {}
    shareable::<dyn Provider>();
    shareable::<dyn ProviderAdmin>();
    shareable::<dyn ManagementProvider>();
    downcastable::<dyn Provider>();
    downcastable::<dyn ProviderAdmin>();
    let _: fn(&dyn Provider) -> &dyn std::any::Any = |store| store;
    let _: fn(&dyn Provider) -> Option<&dyn ProviderAdmin> = |store| store.as_management_capability();
}
