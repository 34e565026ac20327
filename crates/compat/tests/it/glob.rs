//! `use duroxide::*` together with other imports: it imports the root names of the contract and no conflicting name. A name that two
//! globs import is an error where it is used, so the test uses every [`elsewhere`] name.

use duroxide::*;
use elsewhere::*;
use std::time::Duration;

/// Names that must not be at the root: those that the contract keeps in modules, and those of proptest's prelude.
#[allow(non_camel_case_types, reason = "some of the names are functions and modules where they come from")]
mod elsewhere {
    macro_rules! names {
        ($($name:ident)+) => {
            $(#[derive(Debug, PartialEq)] pub(super) struct $name;)+
        };
    }
    names! {
        ActivityRegistry Provider WorkItem ProviderError Runtime VersionPolicy ObservabilityConfig LogFormat
        any any_with prop Arbitrary BoxedStrategy Just ProptestConfig Strategy TestCaseError TestCaseResult
    }
}

#[test]
fn the_glob_imports_the_root_names() {
    let event =
        Event::with_event_id(INITIAL_EVENT_ID, "i", INITIAL_EXECUTION_ID, None, EventKind::KeyValuesCleared);
    assert_eq!(event.duroxide_version, current_build_version().to_string());
    let policy = RetryPolicy::new(2).with_backoff(BackoffStrategy::Fixed { delay: Duration::from_millis(5) });
    assert_eq!(policy.delay_for_attempt(1), Duration::from_millis(5));
    assert!(TagFilter::any().matches(None));
    assert!(is_auto_generated_sub_orch_id(&format!("{SUB_ORCH_AUTO_PREFIX}2")));
    assert_eq!(runtime::limits::MAX_KV_KEYS, 150);
    let _: Option<ProviderRef> = None;
}

#[test]
fn the_glob_imports_no_conflicting_names() {
    macro_rules! ours {
        ($($name:ident)+) => { $({ let ours: $name = $name; assert_eq!(ours, $name); })+ };
    }
    ours! {
        ActivityRegistry Provider WorkItem ProviderError Runtime VersionPolicy ObservabilityConfig LogFormat
        any any_with prop Arbitrary BoxedStrategy Just ProptestConfig Strategy TestCaseError TestCaseResult
    }
}
