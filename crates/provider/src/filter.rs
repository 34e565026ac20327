//! The pinned versions that a dispatcher can replay.

use outlast_model::current_build_version;
use semver::Version;

/// A range of versions, both ends included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SemverRange {
    /// Lowest version.
    pub min: Version,
    /// Highest version.
    pub max: Version,
}

impl SemverRange {
    /// From `min` to `max`, both included.
    pub fn new(min: Version, max: Version) -> Self {
        Self { min, max }
    }

    /// Whether the version lies in the range.
    pub fn contains(&self, version: &Version) -> bool {
        *version >= self.min && *version <= self.max
    }

    /// All versions up to the contract version of this build.
    pub fn default_for_current_build() -> Self {
        Self::new(Version::new(0, 0, 0), current_build_version())
    }
}

/// The versions that a dispatcher accepts. An execution without a pinned version is always accepted. An empty list accepts no
/// execution.
#[derive(Debug, Clone)]
pub struct DispatcherCapabilityFilter {
    /// The supported ranges; one match is enough.
    pub supported_duroxide_versions: Vec<SemverRange>,
}

impl DispatcherCapabilityFilter {
    /// Whether any range holds the version.
    pub fn is_compatible(&self, version: &Version) -> bool {
        self.supported_duroxide_versions.iter().any(|range| range.contains(version))
    }

    /// One range: all versions up to the contract version of this build.
    pub fn default_for_current_build() -> Self {
        Self { supported_duroxide_versions: vec![SemverRange::default_for_current_build()] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_include_both_ends_and_any_range_is_enough() {
        let range = |a: u64, b: u64| SemverRange::new(Version::new(0, a, 0), Version::new(0, b, 0));
        let filter =
            DispatcherCapabilityFilter { supported_duroxide_versions: vec![range(1, 2), range(5, 6)] };
        let accepted: Vec<u64> = (0..8).filter(|m| filter.is_compatible(&Version::new(0, *m, 0))).collect();
        assert_eq!(accepted, [1, 2, 5, 6]);
        assert!(SemverRange::default_for_current_build().contains(&current_build_version()));
        let none = DispatcherCapabilityFilter { supported_duroxide_versions: vec![] };
        assert!(!none.is_compatible(&current_build_version()));
    }
}
