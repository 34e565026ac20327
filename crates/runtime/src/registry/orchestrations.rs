//! Registering orchestrations.

use super::{DEFAULT_VERSION, OrchestrationRegistry, RegistrationError, RegistryBuilder, VersionPolicy};
use crate::handler::{FnOrchestration, OrchestrationHandler, invoke_typed};
use outlast_engine::OrchestrationContext;
use semver::Version;
use serde::{Serialize, de::DeserializeOwned};
use std::sync::Arc;

const KIND: &str = "orchestration";

type Handler = Arc<dyn OrchestrationHandler>;

impl RegistryBuilder<dyn OrchestrationHandler> {
    /// Registers an orchestration as version 1.0.0. If the name has this version already, the first stays and the error is recorded.
    pub fn register<F, Fut>(mut self, name: impl Into<String>, f: F) -> Self
    where
        F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        let result = self.insert_new(KIND, name.into(), DEFAULT_VERSION, untyped(f));
        self.recording(result)
    }

    /// Registers an orchestration with typed values as version 1.0.0. If the name has this version already, the new one replaces it
    /// and a warning is logged.
    pub fn register_typed<In, Out, F, Fut>(mut self, name: impl Into<String>, f: F) -> Self
    where
        In: DeserializeOwned + Send + 'static,
        Out: Serialize + Send + 'static,
        F: Fn(OrchestrationContext, In) -> Fut + Send + Sync + Clone + 'static,
        Fut: Future<Output = Result<Out, String>> + Send + 'static,
    {
        let name = name.into();
        if self.replace(name.clone(), DEFAULT_VERSION, typed(f)).is_some() {
            tracing::warn!(
                target: "duroxide::runtime::registry",
                "orchestration {name}@{DEFAULT_VERSION} was registered twice; the later registration replaces the first"
            );
        }
        self
    }

    /// Registers one version of an orchestration. A duplicate is not registered; the error is recorded.
    /// [`Self::try_register_versioned`] returns errors instead.
    ///
    /// # Panics
    /// If the version is not valid or lower than a registered version of the name.
    pub fn register_versioned<F, Fut>(self, name: impl Into<String>, version: impl AsRef<str>, f: F) -> Self
    where
        F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.insert_version_or_panic(name.into(), version.as_ref(), untyped(f))
    }

    /// Registers one version of an orchestration with typed values. A duplicate is not registered; the error is recorded.
    /// [`Self::try_register_versioned_typed`] returns errors instead.
    ///
    /// # Panics
    /// If the version is not valid or lower than a registered version of the name.
    pub fn register_versioned_typed<In, Out, F, Fut>(
        self,
        name: impl Into<String>,
        version: impl AsRef<str>,
        f: F,
    ) -> Self
    where
        In: DeserializeOwned + Send + 'static,
        Out: Serialize + Send + 'static,
        F: Fn(OrchestrationContext, In) -> Fut + Send + Sync + Clone + 'static,
        Fut: Future<Output = Result<Out, String>> + Send + 'static,
    {
        self.insert_version_or_panic(name.into(), version.as_ref(), typed(f))
    }

    /// Registers one version of an orchestration.
    ///
    /// # Errors
    /// If the version is not valid, registered already, or lower than a registered version of the name.
    pub fn try_register_versioned<F, Fut>(
        mut self,
        name: impl Into<String>,
        version: impl AsRef<str>,
        f: F,
    ) -> Result<Self, RegistrationError>
    where
        F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.insert_version(name.into(), version.as_ref(), untyped(f))?;
        Ok(self)
    }

    /// Registers one version of an orchestration with typed values.
    ///
    /// # Errors
    /// If the version is not valid, registered already, or lower than a registered version of the name.
    pub fn try_register_versioned_typed<In, Out, F, Fut>(
        mut self,
        name: impl Into<String>,
        version: impl AsRef<str>,
        f: F,
    ) -> Result<Self, RegistrationError>
    where
        In: DeserializeOwned + Send + 'static,
        Out: Serialize + Send + 'static,
        F: Fn(OrchestrationContext, In) -> Fut + Send + Sync + Clone + 'static,
        Fut: Future<Output = Result<Out, String>> + Send + 'static,
    {
        self.insert_version(name.into(), version.as_ref(), typed(f))?;
        Ok(self)
    }

    /// Adds the orchestrations of another registry, but not its policies. Orchestrations that are registered already stay; each
    /// duplicate is recorded as an error.
    pub fn merge(self, other: OrchestrationRegistry) -> Self {
        self.merge_registry(other, KIND)
    }

    /// Registers several orchestrations of one closure type as version 1.0.0.
    pub fn register_all<F, Fut>(self, items: Vec<(&str, F)>) -> Self
    where
        F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + Clone + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.register_all_handlers(items, |builder, name, f| builder.register(name, f))
    }

    /// Registers a handler for one version of an orchestration; without a version it is 1.0.0. Versions may come in any order. A
    /// duplicate or an invalid version is not registered; the error is recorded.
    pub fn register_handler(
        mut self,
        name: impl Into<String>,
        version: Option<&str>,
        handler: Arc<dyn OrchestrationHandler>,
    ) -> Self {
        let name = name.into();
        let parsed = version.map_or(Ok(DEFAULT_VERSION), |version| parse(&name, version));
        let result = parsed.and_then(|version| self.insert_new(KIND, name, version, handler));
        self.recording(result)
    }

    /// Sets the policy that selects the version of an instance whose start has none.
    pub fn set_policy(mut self, name: impl Into<String>, policy: VersionPolicy) -> Self {
        self.insert_policy(name.into(), policy);
        self
    }

    fn insert_version(
        &mut self,
        name: String,
        version: &str,
        handler: Handler,
    ) -> Result<(), RegistrationError> {
        let version = parse(&name, version)?;
        // A duplicate is reported as a duplicate even if it is also lower than the highest version.
        if let Some(latest) = self.latest(&name)
            && version < *latest
            && !self.has_version(&name, &version)
        {
            let latest = latest.clone();
            return Err(RegistrationError::NotLater { name, version, latest });
        }
        self.insert_new(KIND, name, version, handler)
    }

    fn insert_version_or_panic(mut self, name: String, version: &str, handler: Handler) -> Self {
        match self.insert_version(name, version, handler) {
            result @ (Ok(()) | Err(RegistrationError::Duplicate { .. })) => self.recording(result),
            Err(error) => panic!("{error}"),
        }
    }
}

fn parse(name: &str, version: &str) -> Result<Version, RegistrationError> {
    Version::parse(version).map_err(|error| RegistrationError::InvalidVersion {
        name: name.to_string(),
        version: version.to_string(),
        reason: error.to_string(),
    })
}

fn untyped<F, Fut>(f: F) -> Handler
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    Arc::new(FnOrchestration(f))
}

fn typed<In, Out, F, Fut>(f: F) -> Handler
where
    In: DeserializeOwned + Send + 'static,
    Out: Serialize + Send + 'static,
    F: Fn(OrchestrationContext, In) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Out, String>> + Send + 'static,
{
    untyped(move |ctx, input: String| invoke_typed(&f, ctx, &input))
}
