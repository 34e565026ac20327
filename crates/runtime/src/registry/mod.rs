//! Registries: the handlers of orchestrations and activities by name and version.

mod activities;
mod builder;
mod error;
mod orchestrations;
mod resolve;

pub use builder::RegistryBuilder;
pub use error::RegistrationError;

use crate::handler::{ActivityHandler, OrchestrationHandler};
use semver::Version;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// Orchestrations by name and version.
pub type OrchestrationRegistry = Registry<dyn OrchestrationHandler>;
/// Activities by name.
pub type ActivityRegistry = Registry<dyn ActivityHandler>;
/// Builds an [`OrchestrationRegistry`].
pub type OrchestrationRegistryBuilder = RegistryBuilder<dyn OrchestrationHandler>;
/// Builds an [`ActivityRegistry`].
pub type ActivityRegistryBuilder = RegistryBuilder<dyn ActivityHandler>;

/// The prefix of the names of built-in activities.
pub(crate) const RESERVED_ACTIVITY_PREFIX: &str = "__duroxide_syscall:";
/// The version of handlers that are registered without one.
const DEFAULT_VERSION: Version = Version::new(1, 0, 0);

/// Selects the version of an instance whose start has none.
#[derive(Clone, Debug)]
pub enum VersionPolicy {
    /// The highest registered version.
    Latest,
    /// This version. If it is not registered, no handler is found.
    Exact(Version),
}

type Handlers<H> = BTreeMap<String, BTreeMap<Version, Arc<H>>>;
type Policies = BTreeMap<String, VersionPolicy>;

/// Handlers by name and version. Clones share the handlers and the version policies.
pub struct Registry<H: ?Sized> {
    handlers: Arc<Handlers<H>>,
    policies: Arc<RwLock<Policies>>,
}

impl<H: ?Sized> Registry<H> {
    /// A builder without handlers.
    pub fn builder() -> RegistryBuilder<H> {
        RegistryBuilder::default()
    }

    /// A builder with this registry's handlers and policies; the registry does not change.
    pub fn builder_from(reg: &Registry<H>) -> RegistryBuilder<H> {
        RegistryBuilder::starting_with((*reg.handlers).clone(), reg.policies().clone())
    }

    /// Changes a policy in all clones and in running runtimes.
    pub fn set_version_policy(&self, name: &str, policy: VersionPolicy) {
        self.policies.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_string(), policy);
    }

    /// The registered names.
    pub fn list_names(&self) -> Vec<String> {
        self.handlers.keys().cloned().collect()
    }

    /// The registered versions of a name, ascending; empty if the name is not registered.
    pub fn list_versions(&self, name: &str) -> Vec<Version> {
        self.handlers.get(name).map_or_else(Vec::new, |versions| versions.keys().cloned().collect())
    }

    /// Whether any version of the name is registered.
    pub fn has(&self, name: &str) -> bool {
        self.handlers.contains_key(name)
    }

    /// The number of registered names.
    pub fn count(&self) -> usize {
        self.handlers.len()
    }

    /// Ignores poisoning: no panic under this lock can leave the map incomplete.
    fn policies(&self) -> RwLockReadGuard<'_, Policies> {
        self.policies.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every registration as `name@version`, for logs and for the answer of a check.
    pub(crate) fn contents(&self) -> impl Iterator<Item = String> + Clone {
        self.handlers.iter().flat_map(|(name, versions)| versions.keys().map(move |v| format!("{name}@{v}")))
    }
}

/// Displays items as `[a, b]`.
struct Listed<I>(I);

impl<I> fmt::Display for Listed<I>
where
    I: IntoIterator<Item: fmt::Display> + Clone,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items: Vec<String> = self.0.clone().into_iter().map(|item| item.to_string()).collect();
        write!(f, "[{}]", items.join(", "))
    }
}

// Not derived: a derive would require `H: Clone` and `H: Default`.
impl<H: ?Sized> Clone for Registry<H> {
    fn clone(&self) -> Self {
        Self { handlers: self.handlers.clone(), policies: self.policies.clone() }
    }
}

impl<H: ?Sized> Default for Registry<H> {
    fn default() -> Self {
        Self { handlers: Arc::default(), policies: Arc::default() }
    }
}

impl<H: ?Sized> fmt::Debug for Registry<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registry{}", Listed(self.contents()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captured::Captured;

    #[test]
    fn a_failed_lookup_is_logged_once_and_a_successful_one_is_not() {
        let registry = OrchestrationRegistry::builder()
            .register("A", |_, _| async { Ok(String::new()) })
            .register_versioned("A", "2.0.0", |_, _| async { Ok(String::new()) })
            .register("B", |_, _| async { Ok(String::new()) })
            .set_policy("B", VersionPolicy::Exact(Version::new(9, 0, 0)))
            .build();
        let captured = Captured::default();
        captured.during(|| {
            registry.resolve_handler("A").unwrap();
            registry.resolve_handler("C");
            registry.resolve_version("B");
            registry.resolve_handler_exact("A", &Version::new(3, 0, 0));
        });
        let all = "contents=[A@1.0.0, A@2.0.0, B@1.0.0]";
        let policies = r#"policies={"B": Exact(Version { major: 9, minor: 0, patch: 0 })}"#;
        let pinned = "Some(Exact(Version { major: 9, minor: 0, patch: 0 }))";
        let record = |available: &str, policy: &str, requested: &str| {
            format!(
                "DEBUG duroxide::runtime::registry: handler lookup missed available_versions=[{available}] {all} \
                 {policies} policy={policy} registered_names=[A, B] {requested}"
            )
        };
        let expected = [
            record("", "None", "requested_name=C"),
            record("1.0.0", pinned, "requested_name=B"),
            record("1.0.0, 2.0.0", "None", "requested_name=A requested_version=3.0.0"),
        ];
        assert_eq!(captured.lines(), expected);
    }
}
