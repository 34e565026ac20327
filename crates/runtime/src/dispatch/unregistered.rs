//! Turns and activities whose handler is not registered on this node: the cause that logs and failures name. The delay before the
//! next delivery is computed in `options/unregistered_backoff.rs`.

use crate::core::Core;
use crate::handler::ActivityHandler;
use crate::registry::{RESERVED_ACTIVITY_PREFIX, Registry};
use outlast_engine::Opening;
use semver::Version;

/// The reason why this node cannot run an orchestration; `None` if its handler is registered.
pub(super) fn orchestration(core: &Core, opening: &Opening) -> Option<String> {
    if core.orchestrations.resolve_opening(opening).is_some() {
        return None;
    }
    let version = opening.version.as_deref();
    Some(missing(core, "orchestration", &opening.name, version, &core.orchestrations))
}

/// The reason why this node cannot run an activity; `None` if its handler is registered.
pub(super) fn activity(core: &Core, name: &str) -> Option<String> {
    let activities: &Registry<dyn ActivityHandler> = &core.activities;
    match activities.resolve_handler(name) {
        Some(_) => None,
        None => Some(missing(core, "activity", name, None, activities)),
    }
}

/// The cause as one line without payloads. Names come from the author's code and may hold any character, so they are escaped.
fn missing<H: ?Sized>(
    core: &Core,
    kind: &str,
    name: &str,
    version: Option<&str>,
    registry: &Registry<H>,
) -> String {
    let node = core.options.worker_node_id.as_deref().unwrap_or(&core.runtime_id).escape_debug().to_string();
    let handler = match version {
        Some(version) => format!("{kind} '{}' version {}", name.escape_debug(), version.escape_debug()),
        None => format!("{kind} '{}'", name.escape_debug()),
    };
    let versions = registry.list_versions(name);
    let registered = match (versions.is_empty(), version) {
        (false, Some(_)) => format!("which has {} of it", listed(&versions)),
        (false, None) => {
            format!("which has {} of it and a version policy that selects another one", listed(&versions))
        }
        (true, _) => match similar(name, registry.list_names()) {
            Some(other) => format!("which has no {kind} of that name, but '{}'", other.escape_debug()),
            None => format!("which has no {kind} of that name"),
        },
    };
    format!("{handler} is not registered on node {node}, {registered}")
}

/// The registered versions in words, at most ten of them.
fn listed(versions: &[Version]) -> String {
    const MAX_LISTED: usize = 10;
    let shown: Vec<String> = versions.iter().rev().take(MAX_LISTED).rev().map(ToString::to_string).collect();
    let word = if versions.len() == 1 { "version" } else { "versions" };
    match versions.len() > MAX_LISTED {
        true => format!("{} {word}, the latest are {}", versions.len(), shown.join(", ")),
        false => format!("{word} {}", shown.join(", ")),
    }
}

/// The registered name that is nearest to `name`, if they differ in letter case only or by at most two characters.
fn similar(name: &str, registered: Vec<String>) -> Option<String> {
    const MAX_DISTANCE: usize = 2;
    let wanted: Vec<char> = name.to_lowercase().chars().collect();
    let own = registered.into_iter().filter(|other| !other.starts_with(RESERVED_ACTIVITY_PREFIX));
    let compared = own.map(|other| {
        let letters: Vec<char> = other.to_lowercase().chars().collect();
        (distance(&wanted, &letters), other)
    });
    let (distance, other) = compared.min()?;
    // If half of the characters or more differ, the name is another name, not a misspelling.
    (distance <= MAX_DISTANCE && distance * 2 < wanted.len()).then_some(other)
}

/// The Levenshtein distance. `usize::MAX` for names that differ in length by more than two characters or are very long.
fn distance(a: &[char], b: &[char]) -> usize {
    const FAR: usize = usize::MAX;
    const LONGEST: usize = 256;
    if a.len().abs_diff(b.len()) > 2 || a.len() > LONGEST {
        return FAR;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::fixture::core;
    use crate::registry::{ActivityRegistry, OrchestrationRegistry, VersionPolicy};

    fn node() -> Core {
        let mut core = core();
        let mut orchestrations = OrchestrationRegistry::builder()
            .register_versioned("Order", "1.1.0", |_, _| async { Ok(String::new()) })
            .register("Pinned", |_, _| async { Ok(String::new()) })
            .set_policy("Pinned", VersionPolicy::Exact(Version::new(9, 0, 0)));
        for minor in 0..12 {
            let version = format!("1.{minor}.0");
            orchestrations =
                orchestrations.register_versioned("Old", version, |_, _| async { Ok(String::new()) });
        }
        core.orchestrations = orchestrations.build_result().unwrap();
        let activities = ActivityRegistry::builder().register("Ship", |_, _| async { Ok(String::new()) });
        core.activities = activities.build_result().unwrap();
        core.options.worker_node_id = Some("n1".to_string());
        core
    }

    fn cause(name: &str, version: Option<&str>) -> Option<String> {
        let opening = Opening {
            name: name.to_string(),
            version: version.map(ToString::to_string),
            input: "secret".to_string(),
            parent: None,
            carried: Vec::new(),
            custom_status: None,
        };
        orchestration(&node(), &opening)
    }

    #[test]
    fn the_cause_names_the_missing_orchestration_and_the_registered_versions() {
        let rows = [
            ("Order", Some("1.1.0"), None),
            ("Order", None, None),
            (
                "Order",
                Some("1.0.0"),
                Some(
                    "orchestration 'Order' version 1.0.0 is not registered on node n1, which has version 1.1.0 of it",
                ),
            ),
            (
                "Order",
                Some("latest\n"),
                Some(
                    "orchestration 'Order' version latest\\n is not registered on node n1, which has version 1.1.0 of it",
                ),
            ),
            (
                "Pinned",
                None,
                Some(
                    "orchestration 'Pinned' is not registered on node n1, which has version 1.0.0 of it and a version \
                     policy that selects another one",
                ),
            ),
            (
                "Old",
                Some("0.9.0"),
                Some(
                    "orchestration 'Old' version 0.9.0 is not registered on node n1, which has 12 versions, the latest \
                     are 1.2.0, 1.3.0, 1.4.0, 1.5.0, 1.6.0, 1.7.0, 1.8.0, 1.9.0, 1.10.0, 1.11.0 of it",
                ),
            ),
            (
                "Ordre",
                None,
                Some(
                    "orchestration 'Ordre' is not registered on node n1, which has no orchestration of that name, but 'Order'",
                ),
            ),
            (
                "Nothing\n",
                None,
                Some(
                    "orchestration 'Nothing\\n' is not registered on node n1, which has no orchestration of that name",
                ),
            ),
        ];
        for (name, version, expected) in rows {
            assert_eq!(cause(name, version).as_deref(), expected, "{name} {version:?}");
        }
    }

    #[test]
    fn the_cause_of_a_missing_activity_names_a_similar_one() {
        let core = node();
        assert_eq!(activity(&core, "Ship"), None);
        assert_eq!(
            activity(&core, "ship").as_deref(),
            Some(
                "activity 'ship' is not registered on node n1, which has no activity of that name, but 'Ship'"
            )
        );
        assert_eq!(
            activity(&core, "new_guid").as_deref(),
            Some("activity 'new_guid' is not registered on node n1, which has no activity of that name")
        );
    }

    #[test]
    fn a_misspelt_name_is_similar_and_another_name_is_not() {
        let names = || vec!["ChargeCard".to_string(), "Ab".to_string(), String::new()];
        let rows = [
            ("ChargeCrad", Some("ChargeCard")),
            ("chargecard", Some("ChargeCard")),
            ("ChargeCards", Some("ChargeCard")),
            ("RefundCard", None),
            ("Cd", None),
            ("", None),
        ];
        for (name, expected) in rows {
            assert_eq!(similar(name, names()).as_deref(), expected, "{name}");
        }
        assert_eq!(similar("x", Vec::new()), None);
    }
}
