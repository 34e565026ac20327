//! Test support: clusters, stores, hooks and crashes.

mod call_hook;
mod cluster;
mod cosmos;
mod crash;
mod hooked;
mod ledger;
pub(crate) mod postgres;
mod scenario;
mod store;

pub(crate) use call_hook::{CallHook, Fault};
pub(crate) use cluster::{Cluster, Node};
pub(crate) use crash::Crash;
pub(crate) use hooked::{Hook, Hooked};
pub(crate) use ledger::Ledger;
pub(crate) use scenario::{on_every_store, survives_crashes, works};
pub(crate) use store::{ALL, Kind, TestStore};

use outlast::runtime::registry::{ActivityRegistry, ActivityRegistryBuilder};
use outlast::{OrchestrationRegistry, OrchestrationRegistryBuilder};
use std::time::Duration;

/// The longest wait of a test.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(60);

pub(crate) fn orchestrations() -> OrchestrationRegistryBuilder {
    OrchestrationRegistry::builder()
}

pub(crate) fn activities() -> ActivityRegistryBuilder {
    ActivityRegistry::builder()
}

/// Held by tests that measure time and by tests that use all cores, so that they do not run at the same time.
pub(crate) static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Waits for this time by tokio's clock.
pub(crate) async fn pass(time: Duration) {
    let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
}

/// An activity that reports its start and ends when it is released.
#[derive(Clone)]
pub(crate) struct Held {
    begun: tokio::sync::mpsc::UnboundedSender<outlast::ActivityContext>,
    ends: std::sync::Arc<tokio::sync::Semaphore>,
}

impl Held {
    pub(crate) fn new() -> (Self, tokio::sync::mpsc::UnboundedReceiver<outlast::ActivityContext>) {
        let (begun, seen) = tokio::sync::mpsc::unbounded_channel();
        (Self { begun, ends: std::sync::Arc::new(tokio::sync::Semaphore::new(0)) }, seen)
    }

    /// Lets one run end.
    pub(crate) fn release(&self) {
        self.ends.add_permits(1);
    }

    /// Registers the activity.
    pub(crate) fn activity(&self, builder: ActivityRegistryBuilder, name: &str) -> ActivityRegistryBuilder {
        let held = self.clone();
        builder.register(name, move |ctx: outlast::ActivityContext, _: String| {
            let held = held.clone();
            async move {
                let attempt = ctx.attempt();
                held.begun.send(ctx).map_err(|error| error.to_string())?;
                held.ends.acquire().await.map_err(|error| error.to_string())?.forget();
                Ok(format!("attempt {attempt}"))
            }
        })
    }
}

/// An orchestration that calls one activity.
pub(crate) fn calls(activity: &'static str) -> OrchestrationRegistryBuilder {
    orchestrations().register("Calls", move |ctx: outlast::OrchestrationContext, input: String| async move {
        ctx.schedule_activity(activity, input).await
    })
}
