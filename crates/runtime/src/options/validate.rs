//! Validation of options: returns all invalid options at once.

use super::RuntimeOptions;
use crate::retention::Retention;
use outlast_model::limits::{Limits, MAX_NODE_ID_BYTES, MAX_WORKER_TAGS};
use outlast_provider::TagFilter;
use std::fmt;
use std::time::Duration;

/// An invalid option. `Display` prints the message, which starts with the option's name and ends with the correction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionProblem {
    /// The field of [`RuntimeOptions`].
    pub option: &'static str,
    /// The problem and its correction.
    pub message: String,
}

impl fmt::Display for OptionProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for OptionProblem {}

/// The problems found so far.
#[derive(Default)]
struct Problems(Vec<OptionProblem>);

impl Problems {
    /// Adds the problem "{option} {text}" unless the option is valid.
    fn unless(&mut self, is_valid: bool, option: &'static str, text: impl fmt::Display) {
        if !is_valid {
            self.0.push(OptionProblem { option, message: format!("{option} {text}") });
        }
    }
}

impl RuntimeOptions {
    /// Checks all options.
    ///
    /// # Errors
    /// Each invalid option, in the order of the fields.
    pub fn validate(&self) -> Result<(), Vec<OptionProblem>> {
        let mut problems = Problems::default();
        self.check_dispatch(&mut problems);
        self.check_leases(&mut problems);
        self.check_processing(&mut problems);
        self.check_sessions(&mut problems);
        self.check_tags(&mut problems);
        check_limits(&self.limits, &mut problems);
        if problems.0.is_empty() { Ok(()) } else { Err(problems.0) }
    }

    /// Checks the options about concurrency and polling.
    fn check_dispatch(&self, problems: &mut Problems) {
        problems.unless(
            !self.dispatcher_min_poll_interval.is_zero() || !self.dispatcher_long_poll_timeout.is_zero(),
            "dispatcher_min_poll_interval",
            "and dispatcher_long_poll_timeout are both 0, so an idle runtime would poll without pause: set one of them",
        );
        problems.unless(
            self.orchestration_concurrency > 0 || self.worker_concurrency > 0,
            "orchestration_concurrency",
            "and worker_concurrency are both 0, so nothing would ever run: set at least one of them to 1 or more",
        );
    }

    fn check_leases(&self, problems: &mut Problems) {
        let leases = [
            ("orchestrator_lock_timeout", self.orchestrator_lock_timeout),
            ("worker_lock_timeout", self.worker_lock_timeout),
            ("session_lock_timeout", self.session_lock_timeout),
        ];
        for (option, lease) in leases {
            problems.unless(
                lease >= Duration::from_millis(1),
                option,
                format_args!(
                    "is {lease:?}, so every lease would be over when it is granted: set it to seconds, at least 1 ms"
                ),
            );
        }
    }

    /// Checks the options about gauges, unregistered handlers, attempts and replay versions.
    fn check_processing(&self, problems: &mut Problems) {
        problems.unless(
            !self.observability.gauge_poll_interval.is_zero(),
            "observability.gauge_poll_interval",
            "is 0, so the runtime would read the gauges from the store without pause: set it to a minute",
        );
        let backoff = &self.unregistered_backoff;
        problems.unless(
            !backoff.base_delay.is_zero() && backoff.base_delay <= backoff.max_delay,
            "unregistered_backoff",
            format_args!(
                "has base_delay {:?} and max_delay {:?}: set 0 < base_delay <= max_delay, or turns and activities whose \
                 handler is not registered here are poisoned before another node can fetch them",
                backoff.base_delay, backoff.max_delay
            ),
        );
        problems.unless(
            self.max_attempts > 0,
            "max_attempts",
            "is 0, so every message would be poisoned at its first delivery: set it to 1 or more",
        );
        if let Some(problem) = self.retention.as_ref().and_then(Retention::problem) {
            problems.unless(false, "retention", problem);
        }
        problems.unless(
            self.node_heartbeat.is_none_or(|every| every >= Duration::from_millis(100)),
            "node_heartbeat",
            "is below 100 ms, so the store would be busy with reports: set it to seconds, or None for no reports",
        );
        if let Some(range) = &self.supported_replay_versions {
            problems.unless(
                range.min <= range.max,
                "supported_replay_versions",
                format_args!("from {} to {} holds no version: swap the two", range.min, range.max),
            );
        }
    }

    fn check_sessions(&self, problems: &mut Problems) {
        if let Some(message) = self.session_idle_problem() {
            problems.0.push(OptionProblem { option: "session_idle_timeout", message });
        }
        problems.unless(
            !self.session_cleanup_interval.is_zero(),
            "session_cleanup_interval",
            "is 0, so the store would be cleaned without pause: set it to minutes",
        );
        if let Some(node) = &self.worker_node_id {
            problems.unless(
                !node.is_empty(),
                "worker_node_id",
                "is empty: give this node a name of its own, or None for a random one",
            );
            problems.unless(
                node.len() <= MAX_NODE_ID_BYTES,
                "worker_node_id",
                format_args!(
                    "has {} bytes, the limit is {MAX_NODE_ID_BYTES}: give this node a shorter name",
                    node.len()
                ),
            );
            problems.unless(
                !node.chars().any(char::is_control),
                "worker_node_id",
                format_args!("'{}' has a control character: remove it", node.escape_debug()),
            );
        }
    }

    /// The problem with `session_idle_timeout`, if it is too short: a session must not become idle while one of its activities runs
    /// and its next renewal is not due.
    pub(crate) fn session_idle_problem(&self) -> Option<String> {
        let unrenewed = self
            .worker_lock_timeout
            .checked_sub(self.worker_lock_renewal_buffer)
            .unwrap_or(Duration::from_secs(1));
        (self.session_idle_timeout <= unrenewed).then(|| {
            format!(
                "session_idle_timeout ({:?}) must be greater than the worker lock renewal interval ({unrenewed:?} = \
                 worker_lock_timeout - worker_lock_renewal_buffer), or sessions would end under running activities: \
                 raise session_idle_timeout",
                self.session_idle_timeout
            )
        })
    }

    fn check_tags(&self, problems: &mut Problems) {
        let (TagFilter::Tags(tags) | TagFilter::DefaultAnd(tags)) = &self.worker_tag_filter else { return };
        problems.unless(
            (1..=MAX_WORKER_TAGS).contains(&tags.len()),
            "worker_tag_filter",
            format_args!("has {} tags: set 1 to {MAX_WORKER_TAGS} of them", tags.len()),
        );
        if let Some(longest) = tags.iter().map(String::len).max() {
            problems.unless(
                longest <= self.limits.tag_bytes,
                "worker_tag_filter",
                format_args!(
                    "has a tag of {longest} bytes, but no activity can have one over {} (limits.tag_bytes): shorten it",
                    self.limits.tag_bytes
                ),
            );
        }
    }
}

fn check_limits(limits: &Limits, problems: &mut Problems) {
    // Destructured, so that a limit that is missing here is a compile error. The limits of carried events may be 0.
    let Limits {
        payload_bytes,
        decisions_per_turn,
        history_events,
        history_events_warning,
        history_bytes,
        mailbox_messages,
        name_bytes,
        custom_status_bytes,
        tag_bytes,
        kv_value_bytes,
        kv_keys,
        carry_forward_events: _,
        carry_forward_bytes: _,
    } = *limits;
    let values = [
        ("limits.payload_bytes", payload_bytes),
        ("limits.decisions_per_turn", decisions_per_turn),
        ("limits.history_events", history_events),
        ("limits.history_events_warning", history_events_warning),
        ("limits.history_bytes", history_bytes),
        ("limits.mailbox_messages", mailbox_messages),
        ("limits.name_bytes", name_bytes),
        ("limits.custom_status_bytes", custom_status_bytes),
        ("limits.tag_bytes", tag_bytes),
        ("limits.kv_value_bytes", kv_value_bytes),
        ("limits.kv_keys", kv_keys),
    ];
    for (option, value) in values {
        problems.unless(
            value > 0,
            option,
            "is 0, which every instance exceeds: raise it, or use usize::MAX for no limit",
        );
    }
    problems.unless(
        history_events_warning <= history_events,
        "limits.history_events_warning",
        format_args!(
            "({history_events_warning}) is above limits.history_events ({history_events}), so there would be no warning: \
             lower it"
        ),
    );
}
