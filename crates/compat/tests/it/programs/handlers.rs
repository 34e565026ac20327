//! `OrchestrationHandler`, `runtime::ActivityHandler`, `FnOrchestration`, `FnActivity`, `OrchestrationHandlerRef`:
//! handlers that are types of the user.

use async_trait::async_trait;
use duroxide::runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use duroxide::runtime::{ActivityHandler, FnActivity, FnOrchestration};
use duroxide::{ActivityContext, OrchestrationContext, OrchestrationHandler, OrchestrationHandlerRef};
use std::sync::Arc;

struct Greeter {
    greeting: String,
}

#[async_trait]
impl OrchestrationHandler for Greeter {
    async fn invoke(&self, ctx: OrchestrationContext, input: String) -> Result<String, String> {
        let name = ctx.schedule_activity("Upper", input).await?;
        Ok(format!("{}, {name}", self.greeting))
    }
}

struct Upper;

#[async_trait]
impl ActivityHandler for Upper {
    async fn invoke(&self, _ctx: ActivityContext, input: String) -> Result<String, String> {
        Ok(input.to_uppercase())
    }
}

/// A handler can be passed as an object and called by registered closures.
#[tokio::test]
async fn types_of_the_user_are_handlers() {
    let greeter: OrchestrationHandlerRef = Arc::new(Greeter { greeting: "Hello".into() });
    let upper: Arc<dyn ActivityHandler> = Arc::new(Upper);
    let orchestrations = OrchestrationRegistry::builder()
        .register("Greet", move |ctx, input| {
            let greeter = greeter.clone();
            async move { greeter.invoke(ctx, input).await }
        })
        .build();
    let activities = ActivityRegistry::builder()
        .register("Upper", move |ctx, input| {
            let upper = upper.clone();
            async move { upper.invoke(ctx, input).await }
        })
        .build();
    let (_store, rt, client) = super::started(activities, orchestrations).await;
    client.start_orchestration("greet", "Greet", "ada").await.unwrap();
    assert_eq!(super::output(&client, "greet").await, "Hello, ADA");
    rt.shutdown(None).await;
}

/// A registry returns handlers.
#[test]
fn functions_are_handlers() {
    fn orchestration(_: impl OrchestrationHandler) {}
    fn activity(_: impl ActivityHandler) {}
    orchestration(FnOrchestration(|_ctx: OrchestrationContext, input: String| async move { Ok(input) }));
    activity(FnActivity(|_ctx: ActivityContext, input: String| async move { Ok(input) }));
    let registry =
        OrchestrationRegistry::builder().register("A", |_, input| async move { Ok(input) }).build();
    let (version, handler): (semver::Version, Arc<dyn OrchestrationHandler>) =
        registry.resolve_handler("A").unwrap();
    orchestration(Passes(handler));
    assert_eq!(version, semver::Version::new(1, 0, 0));
}

struct Passes(Arc<dyn OrchestrationHandler>);

#[async_trait]
impl OrchestrationHandler for Passes {
    async fn invoke(&self, ctx: OrchestrationContext, input: String) -> Result<String, String> {
        self.0.invoke(ctx, input).await
    }
}
