//! Registering activities.

use super::{
    ActivityRegistry, DEFAULT_VERSION, RESERVED_ACTIVITY_PREFIX, RegistrationError, Registry, RegistryBuilder,
};
use crate::ActivityContext;
use crate::handler::{ActivityHandler, FnActivity, invoke_typed};
use serde::{Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;
use std::sync::Arc;

const KIND: &str = "activity";

impl ActivityRegistry {
    /// The names of the activities that the user registered: all but the built-in ones.
    pub(crate) fn user_names(&self) -> impl Iterator<Item = String> {
        self.list_names().into_iter().filter(|name| !name.starts_with(RESERVED_ACTIVITY_PREFIX))
    }
}

impl RegistryBuilder<dyn ActivityHandler> {
    /// A builder with this registry's activities; the registry does not change.
    pub fn from_registry(reg: &ActivityRegistry) -> Self {
        Registry::builder_from(reg)
    }

    /// Registers an activity. An activity whose name is taken or reserved is not registered; the error is recorded.
    /// [`Self::try_register`] returns it instead.
    pub fn register<F, Fut>(mut self, name: impl Into<String>, f: F) -> Self
    where
        F: Fn(ActivityContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        let result = self.insert_activity(name.into(), Arc::new(FnActivity(f)));
        self.recording(result)
    }

    /// Registers an activity with typed values. An activity whose name is taken or reserved is not registered; the error is recorded.
    pub fn register_typed<In, Out, F, Fut>(self, name: impl Into<String>, f: F) -> Self
    where
        In: DeserializeOwned + Send + 'static,
        Out: Serialize + Send + 'static,
        F: Fn(ActivityContext, In) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Out, String>> + Send + 'static,
    {
        self.register(name, move |ctx, input: String| invoke_typed(&f, ctx, &input))
    }

    /// Registers an activity.
    ///
    /// # Errors
    /// If the name is taken or reserved.
    pub fn try_register<F, Fut>(mut self, name: impl Into<String>, f: F) -> Result<Self, RegistrationError>
    where
        F: Fn(ActivityContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.insert_activity(name.into(), Arc::new(FnActivity(f)))?;
        Ok(self)
    }

    /// Adds the activities of another registry. Activities that are registered already stay; each duplicate is recorded as an error.
    pub fn merge(self, other: ActivityRegistry) -> Self {
        self.merge_registry(other, KIND)
    }

    /// Registers several activities of one closure type.
    pub fn register_all<F, Fut>(self, items: Vec<(&str, F)>) -> Self
    where
        F: Fn(ActivityContext, String) -> Fut + Send + Sync + Clone + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.register_all_handlers(items, |builder, name, f| builder.register(name, f))
    }

    /// Registers a handler. A handler whose name is taken or reserved is not registered; the error is recorded.
    pub fn register_handler(mut self, name: impl Into<String>, handler: Arc<dyn ActivityHandler>) -> Self {
        let result = self.insert_activity(name.into(), handler);
        self.recording(result)
    }

    fn insert_activity(
        &mut self,
        name: String,
        handler: Arc<dyn ActivityHandler>,
    ) -> Result<(), RegistrationError> {
        if name.starts_with(RESERVED_ACTIVITY_PREFIX) {
            return Err(RegistrationError::ReservedName { name });
        }
        self.insert_new(KIND, name, DEFAULT_VERSION, handler)
    }
}

impl ActivityRegistry {
    /// A copy with the built-in activities. It shares the policies with the original, so that [`Registry::set_version_policy`] on the
    /// original takes effect in a running runtime.
    pub(crate) fn with_builtins(
        &self,
        builtins: impl IntoIterator<Item = (String, Arc<dyn ActivityHandler>)>,
    ) -> Self {
        let mut handlers = (*self.handlers).clone();
        for (name, handler) in builtins {
            handlers.insert(name, BTreeMap::from([(DEFAULT_VERSION, handler)]));
        }
        Self { handlers: Arc::new(handlers), policies: self.policies.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity_context::ActivityIdentity;
    use crate::registry::VersionPolicy;
    use outlast_memory::MemoryProvider;
    use tokio_util::sync::CancellationToken;

    async fn run(registry: &ActivityRegistry, name: &str, input: &str) -> Result<String, String> {
        let identity = ActivityIdentity {
            instance_id: "i".into(),
            execution_id: 1,
            orchestration_name: "O".into(),
            orchestration_version: "1.0.0".into(),
            activity_name: name.into(),
            activity_id: 2,
            worker_id: "w".into(),
            session_id: None,
            tag: None,
            deliveries: 1,
            failures: 0,
        };
        let (token, store) = (CancellationToken::new(), Arc::new(MemoryProvider::new()));
        let context = ActivityContext::new(identity, token, store, Arc::default());
        let (_, handler) = registry.resolve_handler(name).unwrap();
        handler.invoke(context, input.into()).await
    }

    #[tokio::test]
    async fn registered_activities_run_with_their_context() {
        struct NotClone(u32);
        let offset = NotClone(5);
        let registry = ActivityRegistry::builder()
            .register("key", |ctx, input| async move { Ok(format!("{input}/{}", ctx.idempotency_key())) })
            .register_typed::<u32, Vec<u32>, _, _>("add", move |_, n| {
                let sum = n + offset.0;
                async move { Ok(vec![sum]) }
            })
            .build_result()
            .unwrap();
        assert_eq!(run(&registry, "key", "x").await, Ok("x/i:1:2".to_string()));
        assert_eq!(run(&registry, "add", "2").await, Ok("[7]".to_string()));
        assert!(run(&registry, "add", "two").await.unwrap_err().contains("expected u32"));
    }

    #[tokio::test]
    async fn builtins_are_in_a_copy_that_shares_the_policies() {
        let user = ActivityRegistry::builder().register("mine", |_, _| async { Ok("m".into()) }).build();
        let name = format!("{RESERVED_ACTIVITY_PREFIX}new_guid");
        let builtin: Arc<dyn ActivityHandler> = Arc::new(FnActivity(|_, _| async { Ok("guid".to_string()) }));
        let with = user.with_builtins([(name.clone(), builtin)]);
        assert_eq!(run(&with, &name, "").await, Ok("guid".to_string()));
        assert_eq!((with.count(), user.list_names()), (2, vec!["mine".to_string()]));
        user.set_version_policy("mine", VersionPolicy::Exact(semver::Version::new(9, 0, 0)));
        assert!(with.resolve_handler("mine").is_none(), "the copy uses the new policy");
    }
}
