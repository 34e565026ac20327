//! The policy: which instances are deleted, and after which age.

use outlast_model::ExecutionStatus;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// The time for which ended instances of one orchestration are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// For this time after their end.
    For(Duration),
    /// Retention does not delete these instances.
    Always,
}

/// Deletes ended instances, records of the audit and dead letters after an age. The default deletes nothing.
///
/// Retention never deletes a tree of parents and children in which an instance runs, is held, or has a message or an activity, and
/// never the newest record of the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Deletes completed instances this long after their end.
    pub completed_for: Option<Duration>,
    /// Deletes failed, cancelled and terminated instances this long after their end.
    pub failed_for: Option<Duration>,
    /// Orchestrations with an age of their own, in place of both ages above.
    pub orchestrations: BTreeMap<String, Keep>,
    /// Deletes records of the audit of this age.
    pub audit_for: Option<Duration>,
    /// Deletes dead letters of this age.
    pub dead_letters_for: Option<Duration>,
    /// The time between two passes of a runtime.
    pub every: Duration,
    /// The most roots, records or dead letters of one step.
    pub batch: usize,
    /// The share of the time that steps may take, from 1 to 100. The pass pauses after each step.
    pub load_percent: u8,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            completed_for: None,
            failed_for: None,
            orchestrations: BTreeMap::new(),
            audit_for: None,
            dead_letters_for: None,
            every: Duration::from_secs(3_600),
            batch: 100,
            load_percent: 10,
        }
    }
}

impl Retention {
    /// Deletes ended instances, whatever their status, after this time.
    pub fn ended_for(age: Duration) -> Self {
        Self { completed_for: Some(age), failed_for: Some(age), ..Self::default() }
    }

    /// The age at which an instance is deleted; `None` if it is kept.
    pub(crate) fn age_of(&self, orchestration: &str, status: &str) -> Option<Duration> {
        let status = ExecutionStatus::from_text(status).filter(|status| status.ends_instance())?;
        match (self.orchestrations.get(orchestration), status) {
            (Some(Keep::For(age)), _) => Some(*age),
            (Some(Keep::Always), _) => None,
            (None, ExecutionStatus::Completed) => self.completed_for,
            (None, _) => self.failed_for,
        }
    }

    /// The shortest age of instances; `None` if all are kept.
    pub(crate) fn shortest_age(&self) -> Option<Duration> {
        let own = self.orchestrations.values().filter_map(|keep| match keep {
            Keep::For(age) => Some(*age),
            Keep::Always => None,
        });
        own.chain(self.completed_for).chain(self.failed_for).min()
    }

    /// The reason for which the policy cannot be applied; `None` for a valid policy.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        match self {
            Self { batch: 0, .. } => Some("has batch 0, so no step would delete anything: set it to 100"),
            Self { load_percent: 0, .. } => Some("has load_percent 0: set it to a number from 1 to 100"),
            Self { load_percent: 101.., .. } => {
                Some("has a load_percent above 100: set it to a number from 1 to 100")
            }
            Self { every, .. } if every.is_zero() => {
                Some("has every 0, so the runtime would make passes without pause: set it to an hour")
            }
            _ => None,
        }
    }
}

/// The ages, for the audit.
impl fmt::Display for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let ages = [
            ("completed", self.completed_for),
            ("failed", self.failed_for),
            ("audit", self.audit_for),
            ("dead letters", self.dead_letters_for),
        ];
        for (name, age) in ages {
            parts.extend(age.map(|age| format!("{name} {}s", age.as_secs())));
        }
        parts.extend(self.orchestrations.iter().map(|(name, keep)| match keep {
            Keep::For(age) => format!("{name} {}s", age.as_secs()),
            Keep::Always => format!("{name} always"),
        }));
        write!(f, "kept for: {}", parts.join(", "))
    }
}
