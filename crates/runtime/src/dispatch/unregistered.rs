//! Work whose handler this node does not have: the cause, as logs and failures name it.

use crate::core::Core;
use crate::handler::{ActivityHandler, OrchestrationHandler};
use crate::registry::{RESERVED_ACTIVITY_PREFIX, Registry};
use outlast_engine::Opening;
use semver::Version;
use std::sync::Arc;

/// The version that was asked for or is stored, or what the policy says.
pub(super) fn resolve(core: &Core, opening: &Opening) -> Option<(Version, Arc<dyn OrchestrationHandler>)> {
    let registry = &core.orchestrations;
    match &opening.version {
        Some(text) => Version::parse(text).ok().and_then(|version| {
            registry.resolve_handler_exact(&opening.name, &version).map(|handler| (version, handler))
        }),
        None => registry.resolve_handler(&opening.name),
    }
}

/// Why this node cannot run an orchestration; `None` if it can.
pub(super) fn orchestration(core: &Core, opening: &Opening) -> Option<String> {
    if resolve(core, opening).is_some() {
        return None;
    }
    let version = opening.version.as_deref();
    Some(missing(core, "orchestration", &opening.name, version, &core.orchestrations))
}

/// Why this node cannot run an activity; `None` if it can.
pub(super) fn activity(core: &Core, name: &str) -> Option<String> {
    let activities: &Registry<dyn ActivityHandler> = &core.activities;
    match activities.resolve_handler(name) {
        Some(_) => None,
        None => Some(missing(core, "activity", name, None, activities)),
    }
}

/// One line, without payloads. Names are those of the author, and may hold anything.
fn missing<H: ?Sized>(
    core: &Core,
    kind: &str,
    name: &str,
    version: Option<&str>,
    registry: &Registry<H>,
) -> String {
    let node = core.options.worker_node_id.as_deref().unwrap_or(&core.runtime_id).escape_debug().to_string();
    let what = match version {
        Some(version) => format!("{kind} '{}' version {}", name.escape_debug(), version.escape_debug()),
        None => format!("{kind} '{}'", name.escape_debug()),
    };
    let versions = registry.list_versions(name);
    let there = match (versions.is_empty(), version) {
        (false, Some(_)) => format!("which has {} of it", listed(&versions)),
        (false, None) => {
            format!("which has {} of it and a version policy that selects another one", listed(&versions))
        }
        (true, _) => match similar(name, registry.list_names()) {
            Some(other) => format!("which has no {kind} of that name, but '{}'", other.escape_debug()),
            None => format!("which has no {kind} of that name"),
        },
    };
    format!("{what} is not registered on node {node}, {there}")
}

fn listed(versions: &[Version]) -> String {
    const MOST: usize = 10;
    let shown: Vec<String> = versions.iter().rev().take(MOST).rev().map(ToString::to_string).collect();
    let word = if versions.len() == 1 { "version" } else { "versions" };
    match versions.len() > MOST {
        true => format!("{} {word}, the latest are {}", versions.len(), shown.join(", ")),
        false => format!("{word} {}", shown.join(", ")),
    }
}

/// A registered name that differs in letter case or by two characters at most: the name may be misspelt.
fn similar(name: &str, registered: Vec<String>) -> Option<String> {
    const MOST: usize = 2;
    let wanted: Vec<char> = name.to_lowercase().chars().collect();
    let own = registered.into_iter().filter(|other| !other.starts_with(RESERVED_ACTIVITY_PREFIX));
    let compared = own.map(|other| {
        let letters: Vec<char> = other.to_lowercase().chars().collect();
        (distance(&wanted, &letters), other)
    });
    let (distance, other) = compared.min()?;
    // Two of three characters are no misspelling.
    (distance <= MOST && distance * 2 < wanted.len()).then_some(other)
}

/// Characters to be inserted, removed or replaced. Names that differ in length by more than a few are far apart.
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
    fn the_cause_names_what_is_missing_and_what_the_node_has() {
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
    fn the_cause_of_an_activity_names_a_similar_one() {
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
    fn names_are_similar_if_they_are_misspelt() {
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
