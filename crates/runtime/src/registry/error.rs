//! The errors of registrations.

use super::RESERVED_ACTIVITY_PREFIX;
use semver::Version;
use std::fmt;

/// The reason for which a handler was not registered.
#[derive(Clone, PartialEq, Eq)]
pub enum RegistrationError {
    /// This name and version are registered already; the first registration stays.
    Duplicate {
        /// `orchestration` or `activity`.
        kind: &'static str,
        /// The name.
        name: String,
        /// The version.
        version: Version,
    },
    /// The version is not of the form `1.2.3`.
    InvalidVersion {
        /// The orchestration.
        name: String,
        /// The text.
        version: String,
        /// The problem.
        reason: String,
    },
    /// Versions of one name have to be registered in ascending order.
    NotLater {
        /// The orchestration.
        name: String,
        /// The version.
        version: Version,
        /// The highest version so far.
        latest: Version,
    },
    /// The name starts with the prefix of built-in activities.
    ReservedName {
        /// The name.
        name: String,
    },
}

/// Prints the sentence of `Display`, because `unwrap` and a `main` that returns an error print `Debug`.
impl fmt::Debug for RegistrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RegistrationError").field(&self.to_string()).finish()
    }
}

impl fmt::Display for RegistrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate { kind, name, version } => {
                write!(f, "duplicate {kind} registration: {name}@{version}")
            }
            Self::InvalidVersion { name, version, reason } => {
                write!(
                    f,
                    "invalid version '{version}' for orchestration {name} ({reason}): use a form like 1.2.3"
                )
            }
            Self::NotLater { name, version, latest } => write!(
                f,
                "non-monotonic orchestration version for {name}: {version} is not later than existing latest {latest}"
            ),
            Self::ReservedName { name } => {
                write!(f, "activity name '{name}' uses reserved prefix '{RESERVED_ACTIVITY_PREFIX}'")
            }
        }
    }
}

impl std::error::Error for RegistrationError {}
