//! Selects the version of a handler that runs.

use super::{Listed, OrchestrationRegistry, Registry, VersionPolicy};
use crate::handler::OrchestrationHandler;
use outlast_engine::Opening;
use semver::Version;
use std::sync::Arc;

impl<H: ?Sized> Registry<H> {
    /// The handler that the policy selects, with its version.
    pub fn resolve_handler(&self, name: &str) -> Option<(Version, Arc<H>)> {
        let found = self.select(name);
        if found.is_none() {
            self.log_miss(name, None);
        }
        found.map(|(version, handler)| (version.clone(), handler.clone()))
    }

    /// The version that the policy selects.
    pub fn resolve_version(&self, name: &str) -> Option<Version> {
        let found = self.select(name);
        if found.is_none() {
            self.log_miss(name, None);
        }
        found.map(|(version, _)| version.clone())
    }

    /// The handler of exactly this version, independent of the policy.
    pub fn resolve_handler_exact(&self, name: &str, v: &Version) -> Option<Arc<H>> {
        let found = self.handlers.get(name).and_then(|versions| versions.get(v));
        if found.is_none() {
            self.log_miss(name, Some(v));
        }
        found.cloned()
    }

    /// The version that the policy of the name selects; the highest one without a policy.
    fn select(&self, name: &str) -> Option<(&Version, &Arc<H>)> {
        let versions = self.handlers.get(name)?;
        match self.policies().get(name) {
            None | Some(VersionPolicy::Latest) => versions.last_key_value(),
            Some(VersionPolicy::Exact(version)) => versions.get_key_value(version),
        }
    }

    /// Logs the registered handlers after a failed lookup.
    fn log_miss(&self, name: &str, version: Option<&Version>) {
        // The arguments are costly; `debug!` evaluates them only if a subscriber enables the event.
        tracing::debug!(
            target: "duroxide::runtime::registry",
            requested_name = name,
            requested_version = version.map(tracing::field::display),
            policy = ?self.policies().get(name),
            available_versions = %Listed(self.list_versions(name)),
            registered_names = %Listed(self.handlers.keys()),
            contents = %Listed(self.contents()),
            policies = ?*self.policies(),
            "handler lookup missed"
        );
    }
}

impl OrchestrationRegistry {
    /// The handler of an execution: the version in its opening, or without one the version that the policy selects.
    pub(crate) fn resolve_opening(
        &self,
        opening: &Opening,
    ) -> Option<(Version, Arc<dyn OrchestrationHandler>)> {
        match &opening.version {
            Some(text) => Version::parse(text).ok().and_then(|version| {
                self.resolve_handler_exact(&opening.name, &version).map(|handler| (version, handler))
            }),
            None => self.resolve_handler(&opening.name),
        }
    }
}
