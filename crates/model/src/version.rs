//! The version of the Duroxide contract that this code speaks, which is independent of the package's own.

/// Stamped into [`Event::duroxide_version`](crate::Event::duroxide_version) and into pinned versions.
/// Raised by any change of the replay rules; older rules stay available to the engine.
pub const CONTRACT_VERSION: &str = "0.1.32";

/// [`CONTRACT_VERSION`] as a parsed version.
pub fn current_build_version() -> semver::Version {
    semver::Version::new(0, 1, 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constant_and_the_parsed_version_agree() {
        assert_eq!(current_build_version().to_string(), CONTRACT_VERSION);
    }
}
