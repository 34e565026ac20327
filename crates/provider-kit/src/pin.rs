//! The pinned version of an execution as database columns.

use outlast_provider::DispatcherCapabilityFilter;
use semver::{BuildMetadata, Prerelease, Version};

/// The columns of a pinned version, without build metadata, which does not affect precedence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinColumns {
    /// Major version.
    pub major: i64,
    /// Minor version.
    pub minor: i64,
    /// Patch version.
    pub patch: i64,
    /// Pre-release identifiers, empty for a release.
    pub pre: String,
}

impl PinColumns {
    /// The columns for a version.
    pub fn of(version: &Version) -> Self {
        let column = |part: u64| i64::try_from(part).unwrap_or(i64::MAX);
        Self {
            major: column(version.major),
            minor: column(version.minor),
            patch: column(version.patch),
            pre: version.pre.to_string(),
        }
    }

    /// The version that the columns hold.
    pub fn version(&self) -> Version {
        let part = |column: i64| u64::try_from(column).unwrap_or(0);
        Version {
            major: part(self.major),
            minor: part(self.minor),
            patch: part(self.patch),
            pre: Prerelease::new(&self.pre).unwrap_or(Prerelease::EMPTY),
            build: BuildMetadata::EMPTY,
        }
    }
}

/// A text whose byte order is the order of versions, for stores that compare versions in queries. Numbers have a fixed length; a
/// release sorts after its pre-releases; numeric identifiers sort before others. Build metadata is ignored.
pub fn sort_key(version: &Version) -> String {
    let numbers = format!("{:020}{:020}{:020}", version.major, version.minor, version.patch);
    if version.pre.is_empty() {
        return numbers + "~";
    }
    version.pre.split('.').fold(numbers, |mut key, identifier| {
        // '!' sorts before every character of an identifier, so that a prefix sorts before the longer identifier.
        key += &match identifier.bytes().all(|byte| byte.is_ascii_digit()) {
            true => format!("0{:05}{identifier}!", identifier.len()),
            false => format!("1{identifier}!"),
        };
        key
    })
}

/// Whether a filter matches the pinned version of an execution. Without a filter or without a pin it always does.
pub fn is_supported(filter: Option<&DispatcherCapabilityFilter>, pin: Option<&PinColumns>) -> bool {
    match (filter, pin) {
        (Some(filter), Some(pin)) => filter.is_compatible(&pin.version()),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_provider::SemverRange;

    #[test]
    fn versions_round_trip_through_their_columns() {
        for text in ["0.1.32", "1.2000.3", "2.0.0-rc.1"] {
            let version = Version::parse(text).unwrap();
            assert_eq!(PinColumns::of(&version).version(), version);
        }
    }

    #[test]
    fn sort_keys_have_the_order_of_versions() {
        let sorted = [
            "0.0.0",
            "0.1.9",
            "0.1.10",
            "1.0.0-0",
            "1.0.0-2",
            "1.0.0-10",
            "1.0.0-a",
            "1.0.0-a.1",
            "1.0.0-a.b",
            "1.0.0-a-b",
            "1.0.0-ab",
            "1.0.0",
            "1.0.1-rc.1",
            "1.2000.3",
            "18446744073709551615.0.0",
        ];
        let versions = sorted.map(|text| Version::parse(text).unwrap());
        for (place, left) in versions.iter().enumerate() {
            for (other, right) in versions.iter().enumerate() {
                assert_eq!(left.cmp(right), place.cmp(&other), "{left} {right}");
                assert_eq!(sort_key(left).cmp(&sort_key(right)), place.cmp(&other), "{left} {right}");
            }
        }
    }

    #[test]
    fn only_a_pin_outside_of_the_filter_is_rejected() {
        let range = |from: [u64; 3], to: [u64; 3]| {
            let version = |[major, minor, patch]: [u64; 3]| Version::new(major, minor, patch);
            DispatcherCapabilityFilter {
                supported_duroxide_versions: vec![SemverRange::new(version(from), version(to))],
            }
        };
        let filter = range([1, 0, 0], [1, 9, 9]);
        let [inside, outside] =
            [[1, 2, 3], [2, 0, 0]].map(|[a, b, c]| PinColumns::of(&Version::new(a, b, c)));
        let cases = [
            (Some(&filter), Some(&inside), true),
            (Some(&filter), Some(&outside), false),
            (Some(&filter), None, true),
            (None, Some(&outside), true),
            (None, None, true),
        ];
        for (filter, pin, expected) in cases {
            assert_eq!(is_supported(filter, pin), expected, "{filter:?} {pin:?}");
        }
    }
}
