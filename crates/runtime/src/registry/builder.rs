//! The common part of the builders for activities and orchestrations.

use super::{Handlers, Policies, RegistrationError, Registry};
use semver::Version;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::{Arc, RwLock};

/// Collects handlers. It records errors; [`RegistryBuilder::build_result`] returns them.
pub struct RegistryBuilder<H: ?Sized> {
    handlers: Handlers<H>,
    policies: Policies,
    errors: Vec<String>,
}

impl<H: ?Sized> RegistryBuilder<H> {
    pub(super) fn starting_with(handlers: Handlers<H>, policies: Policies) -> Self {
        Self { handlers, policies, errors: Vec::new() }
    }

    /// The registry, or all recorded errors, joined with `; `.
    pub fn build_result(self) -> Result<Registry<H>, String> {
        if self.errors.is_empty() { Ok(self.finish()) } else { Err(self.errors.join("; ")) }
    }

    /// The registry without the handlers that could not be registered; each of them is logged as a warning.
    /// [`RegistryBuilder::build_result`] returns the errors instead.
    pub fn build(self) -> Registry<H> {
        for error in &self.errors {
            tracing::warn!(target: "duroxide::runtime::registry", "a handler was not registered: {error}");
        }
        self.finish()
    }

    fn finish(self) -> Registry<H> {
        Registry { handlers: Arc::new(self.handlers), policies: Arc::new(RwLock::new(self.policies)) }
    }

    /// Adds the handlers of another registry, but not its policies. Handlers that are registered already stay; each duplicate is
    /// recorded as the error `duplicate {error_prefix} in merge: {name}@{version}`.
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

    /// Registers a handler, unless its name and version are registered.
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

    /// Registers a handler and returns the one that it replaces.
    pub(super) fn replace(&mut self, name: String, version: Version, handler: Arc<H>) -> Option<Arc<H>> {
        self.handlers.entry(name).or_default().insert(version, handler)
    }

    pub(super) fn has_version(&self, name: &str, version: &Version) -> bool {
        self.handlers.get(name).is_some_and(|versions| versions.contains_key(version))
    }

    /// The highest registered version of a name.
    pub(super) fn latest(&self, name: &str) -> Option<&Version> {
        self.handlers.get(name)?.last_key_value().map(|(version, _)| version)
    }

    pub(super) fn insert_policy(&mut self, name: String, policy: super::VersionPolicy) {
        self.policies.insert(name, policy);
    }

    /// Records the error, if there is one.
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
