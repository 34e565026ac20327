//! Defaults and validation of options (api 7.2).

use outlast_model::limits::Limits;
use outlast_provider::{SemverRange, TagFilter};
use outlast_runtime::{ParentClosePolicy, RuntimeOptions, UnregisteredBackoffConfig};
use std::collections::HashSet;
use std::time::Duration;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const fn s(s: u64) -> Duration {
    Duration::from_secs(s)
}

#[test]
fn defaults_match_the_contract() {
    let options = RuntimeOptions::default();
    assert_eq!(
        (options.dispatcher_min_poll_interval, options.dispatcher_long_poll_timeout),
        (ms(100), s(30))
    );
    assert_eq!((options.orchestration_concurrency, options.worker_concurrency), (2, 2));
    assert_eq!((options.orchestrator_lock_timeout, options.orchestrator_lock_renewal_buffer), (s(5), s(2)));
    assert_eq!((options.worker_lock_timeout, options.worker_lock_renewal_buffer), (s(30), s(5)));
    assert_eq!((options.session_lock_timeout, options.session_lock_renewal_buffer), (s(30), s(5)));
    assert_eq!((options.session_idle_timeout, options.session_cleanup_interval), (s(300), s(300)));
    assert_eq!((options.max_attempts, options.max_sessions_per_runtime), (10, 10));
    assert_eq!(options.activity_cancellation_grace_period, s(10));
    assert_eq!((options.supported_replay_versions, options.worker_node_id), (None, None));
    assert_eq!(options.worker_tag_filter, TagFilter::DefaultOnly);
    assert_eq!((options.warm_executions, options.warm_bytes), (10_000, 256 << 20));
    assert_eq!((options.buffer_early_signals, options.parent_close), (false, ParentClosePolicy::Contract));
    let limits = Limits {
        payload_bytes: 2_097_152,
        decisions_per_turn: 10_000,
        history_events: 50_000,
        history_events_warning: 10_000,
        history_bytes: 52_428_800,
        mailbox_messages: 10_000,
        name_bytes: 256,
        custom_status_bytes: 262_144,
        tag_bytes: 256,
        kv_value_bytes: 65_536,
        kv_keys: 150,
        carry_forward_events: 100,
        carry_forward_bytes: 8_388_608,
    };
    assert_eq!(options.limits, limits);
}

#[test]
fn backoff_doubles_six_times_up_to_its_maximum() {
    let delays =
        |config: &UnregisteredBackoffConfig| [0, 1, 2, 6, 7, 8, u32::MAX].map(|n| config.delay(n).as_secs());
    assert_eq!(delays(&UnregisteredBackoffConfig::default()), [1, 1, 2, 32, 60, 60, 60]);
    let unbounded = UnregisteredBackoffConfig { base_delay: s(1), max_delay: Duration::MAX };
    assert_eq!(delays(&unbounded), [1, 1, 2, 32, 64, 64, 64]);
    let huge = UnregisteredBackoffConfig { base_delay: Duration::MAX, max_delay: Duration::MAX };
    assert_eq!(huge.delay(9), Duration::MAX, "no overflow");
}

#[test]
fn debug_output_of_options_omits_the_clock() {
    let shown =
        format!("{:?}", RuntimeOptions { worker_node_id: Some("node-7".into()), ..Default::default() });
    for part in ["worker_concurrency: 2", "node-7", "parent_close: Contract", "kv_keys: 150", ".."] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

/// The problems of the default options after this change, one message per line.
fn problems(change: impl FnOnce(&mut RuntimeOptions)) -> String {
    let mut options = RuntimeOptions::default();
    change(&mut options);
    match options.clone().validate() {
        Ok(()) => String::new(),
        Err(problems) => {
            for problem in &problems {
                assert!(problem.message.starts_with(problem.option), "{problem:?}");
            }
            problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        }
    }
}

#[test]
fn valid_options_are_accepted() {
    assert_eq!(problems(|_| ()), "");
    assert_eq!(problems(|o| o.orchestration_concurrency = 0), "", "a node that only runs activities");
    assert_eq!(problems(|o| o.worker_concurrency = 0), "", "a node that only runs orchestrations");
    assert_eq!(problems(|o| (o.warm_executions, o.warm_bytes) = (0, 0)), "");
    assert_eq!(problems(|o| (o.max_sessions_per_runtime, o.limits.carry_forward_events) = (0, 0)), "");
    assert_eq!(problems(|o| o.worker_tag_filter = TagFilter::tags(["a", "b", "c", "d", "e"])), "");
    assert_eq!(problems(|o| o.worker_node_id = Some("n".repeat(256))), "");
    assert_eq!(problems(|o| o.orchestrator_lock_timeout = ms(1)), "");
    assert_eq!(problems(|o| o.limits.history_events_warning = o.limits.history_events), "");
}

#[test]
fn each_invalid_option_is_reported_with_a_remedy() {
    let tags = |n: usize| (0..n).map(|i| i.to_string()).collect::<HashSet<String>>();
    type Change = Box<dyn FnOnce(&mut RuntimeOptions)>;
    fn case(
        change: impl FnOnce(&mut RuntimeOptions) + 'static,
        start: &'static str,
        remedy: &'static str,
    ) -> (Change, &'static str, &'static str) {
        (Box::new(change), start, remedy)
    }
    let cases = [
        case(
            |o| (o.dispatcher_min_poll_interval, o.dispatcher_long_poll_timeout) = (s(0), s(0)),
            "dispatcher_min_poll_interval and dispatcher_long_poll_timeout are both 0",
            "set one of them",
        ),
        case(
            |o| (o.orchestration_concurrency, o.worker_concurrency) = (0, 0),
            "orchestration_concurrency and worker_concurrency are both 0",
            "set at least one of them",
        ),
        case(|o| o.orchestrator_lock_timeout = s(0), "orchestrator_lock_timeout is 0ns", "set it to seconds"),
        case(|o| o.worker_lock_timeout = s(0), "worker_lock_timeout is 0ns", "set it to seconds"),
        case(
            |o| o.session_lock_timeout = Duration::from_micros(999),
            "session_lock_timeout is 999µs",
            "at least 1 ms",
        ),
        case(
            |o| o.observability.gauge_poll_interval = s(0),
            "observability.gauge_poll_interval is 0",
            "set it to a minute",
        ),
        case(
            |o| o.unregistered_backoff.base_delay = s(0),
            "unregistered_backoff has base_delay 0ns",
            "set 0 < base",
        ),
        case(
            |o| o.unregistered_backoff.max_delay = ms(1),
            "unregistered_backoff has base_delay 1s",
            "<= max_delay",
        ),
        case(|o| o.max_attempts = 0, "max_attempts is 0", "set it to 1"),
        case(
            |o| {
                o.supported_replay_versions =
                    Some(SemverRange::new("2.0.0".parse().unwrap(), "1.0.0".parse().unwrap()))
            },
            "supported_replay_versions from 2.0.0 to 1.0.0",
            "swap the two",
        ),
        case(|o| o.session_cleanup_interval = s(0), "session_cleanup_interval is 0", "set it to minutes"),
        case(|o| o.worker_node_id = Some(String::new()), "worker_node_id is empty", "a name of its own"),
        case(|o| o.worker_node_id = Some("n".repeat(257)), "worker_node_id has 257 bytes", "a shorter name"),
        case(|o| o.worker_node_id = Some("a\nb".into()), "worker_node_id 'a\\nb' has a control", "remove it"),
        case(
            move |o| o.worker_tag_filter = TagFilter::Tags(tags(0)),
            "worker_tag_filter has 0 tags",
            "set 1 to 5",
        ),
        case(
            move |o| o.worker_tag_filter = TagFilter::DefaultAnd(tags(6)),
            "worker_tag_filter has 6 tags",
            "set 1 to 5",
        ),
        case(
            |o| o.worker_tag_filter = TagFilter::tags(["t".repeat(257)]),
            "worker_tag_filter has a tag of 257 bytes",
            "shorten it",
        ),
        case(
            |o| o.limits.history_events = 9_999,
            "limits.history_events_warning (10000) is above limits.history_events (9999)",
            "lower it",
        ),
    ];
    for (change, start, remedy) in cases {
        let found = problems(change);
        assert!(
            found.starts_with(start) && found.contains(remedy) && found.lines().count() == 1,
            "{start}: {found}"
        );
    }
}

#[test]
fn session_idle_timeout_must_exceed_the_activity_renewal_interval() {
    let with = |idle: u64, lease: u64, buffer: u64| {
        problems(|o| {
            (o.session_idle_timeout, o.worker_lock_timeout, o.worker_lock_renewal_buffer) =
                (s(idle), s(lease), s(buffer));
        })
    };
    assert!(with(25, 30, 5).starts_with(
        "session_idle_timeout (25s) must be greater than the worker lock renewal interval (25s"
    ));
    assert_eq!(with(26, 30, 5), "");
    assert!(with(1, 5, 10).contains("interval (1s"), "one second if the buffer exceeds the lease");
    assert_eq!(with(2, 5, 10), "");
}

#[test]
fn limits_of_zero_are_rejected_and_all_problems_are_returned() {
    let zero = Limits {
        payload_bytes: 0,
        decisions_per_turn: 0,
        history_events: 0,
        history_events_warning: 0,
        history_bytes: 0,
        mailbox_messages: 0,
        name_bytes: 0,
        custom_status_bytes: 0,
        tag_bytes: 0,
        kv_value_bytes: 0,
        kv_keys: 0,
        carry_forward_events: 0,
        carry_forward_bytes: 0,
    };
    let found = problems(|o| (o.max_attempts, o.limits) = (0, zero));
    assert_eq!(found.lines().count(), 12, "{found}");
    assert_eq!(found.lines().filter(|line| line.starts_with("limits.") && line.contains("is 0")).count(), 11);
}
