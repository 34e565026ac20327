//! What both builders share.

use super::{Handlers, Policies, RegistrationError, Registry};
use semver::Version;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::{Arc, RwLock};

/// Collects handlers. Mistakes are recorded as they happen and come out of [`RegistryBuilder::build_result`].
pub struct RegistryBuilder<H: ?Sized> {
    handlers: Handlers<H>,
    policies: Policies,
    errors: Vec<String>,
}

impl<H: ?Sized> RegistryBuilder<H> {
    pub(super) fn starting_with(handlers: Handlers<H>, policies: Policies) -> Self {
        Self { handlers, policies, errors: Vec::new() }
    }

    /// The registry, or every recorded mistake, joined with `; `.
    pub fn build_result(self) -> Result<Registry<H>, String> {
        if self.errors.is_empty() { Ok(self.finish()) } else { Err(self.errors.join("; ")) }
    }

    /// The registry without the handlers that could not be registered; each of those is logged as a warning.
    /// [`RegistryBuilder::build_result`] returns the mistakes instead.
    pub fn build(self) -> Registry<H> {
        for error in &self.errors {
            tracing::warn!(target: "duroxide::runtime::registry", "left out of the registry: {error}");
        }
        self.finish()
    }

    fn finish(self) -> Registry<H> {
        Registry { handlers: Arc::new(self.handlers), policies: Arc::new(RwLock::new(self.policies)) }
    }

    /// Adds the handlers of another registry, but not its policies. What is registered already stays, and is recorded
    /// as `duplicate {error_prefix} in merge: {name}@{version}`.
    pub fn merge_registry(mut self, other: Registry<H>, error_prefix: &str) -> Self {
        for (name, versions) in other.handlers.iter() {
            let registered = self.handlers.entry(name.clone()).or_default();
            for (version, handler) in versions {
                match registered.entry(version.clone()) {
                    Entry::Vacant(free) => {
                        free.insert(handler.clone());
                    }
                    Entry::Occupied(_) => {
                        self.errors.push(format!("duplicate {error_prefix} in merge: {name}@{version}"));
                    }
                }
            }
        }
        self
    }

    /// Registers each item with `register_fn`.
    pub fn register_all_handlers<F>(
        self,
        items: Vec<(&str, F)>,
        register_fn: impl Fn(Self, &str, F) -> Self,
    ) -> Self
    where
        F: Clone,
    {
        items.into_iter().fold(self, |builder, (name, f)| register_fn(builder, name, f))
    }

    /// Registers a handler unless its name and version are taken.
    pub(super) fn insert_new(
        &mut self,
        kind: &'static str,
        name: String,
        version: Version,
        handler: Arc<H>,
    ) -> Result<(), RegistrationError> {
        let versions = self.handlers.entry(name.clone()).or_default();
        match versions.entry(version) {
            Entry::Vacant(free) => {
                free.insert(handler);
                Ok(())
            }
            Entry::Occupied(taken) => {
                Err(RegistrationError::Duplicate { kind, name, version: taken.key().clone() })
            }
        }
    }

    /// Registers a handler in place of one that may be there, which is returned.
    pub(super) fn replace(&mut self, name: String, version: Version, handler: Arc<H>) -> Option<Arc<H>> {
        self.handlers.entry(name).or_default().insert(version, handler)
    }

    /// Whether exactly this version is registered.
    pub(super) fn holds(&self, name: &str, version: &Version) -> bool {
        self.handlers.get(name).is_some_and(|versions| versions.contains_key(version))
    }

    /// The highest registered version of a name.
    pub(super) fn latest(&self, name: &str) -> Option<&Version> {
        self.handlers.get(name)?.last_key_value().map(|(version, _)| version)
    }

    pub(super) fn set(&mut self, name: String, policy: super::VersionPolicy) {
        self.policies.insert(name, policy);
    }

    /// The builder with the mistake recorded, if there was one.
    pub(super) fn recording(mut self, result: Result<(), RegistrationError>) -> Self {
        if let Err(error) = result {
            self.errors.push(error.to_string());
        }
        self
    }
}

impl<H: ?Sized> Default for RegistryBuilder<H> {
    fn default() -> Self {
        Self::starting_with(Handlers::new(), Policies::new())
    }
}

impl<H: ?Sized> fmt::Debug for RegistryBuilder<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.handlers.keys().collect();
        f.debug_struct("RegistryBuilder").field("names", &names).field("errors", &self.errors).finish()
    }
}
