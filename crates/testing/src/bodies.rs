//! The runs of activity bodies: recorded, and failed on request.

use crate::fault::ActivityFault;
use crate::shared::Shared;
use async_trait::async_trait;
use outlast_author::plain_text;
use outlast_provider::Clock;
use outlast_runtime::registry::ActivityRegistry;
use outlast_runtime::{ActivityContext, ActivityHandler, Attempt};
use std::sync::{Arc, mpsc};

/// One run of the body of an activity.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    pub(crate) activity: String,
    pub(crate) key: String,
    pub(crate) input: String,
    pub(crate) at_ms: u64,
}

/// The error of an activity that a sweep fails.
pub(crate) const INJECTED: &str = "the test fails this activity";

struct Recorded {
    activity: String,
    inner: Arc<dyn ActivityHandler>,
    shared: Arc<Shared>,
    holds_clock: bool,
}

/// The same activities; the run records their bodies.
pub(crate) fn recorded(
    activities: &ActivityRegistry,
    shared: &Arc<Shared>,
    holds_clock: bool,
) -> Result<ActivityRegistry, String> {
    let mut builder = ActivityRegistry::builder();
    for name in activities.list_names() {
        let Some((_, inner)) = activities.resolve_handler(&name) else { continue };
        let recorded = Recorded { activity: name.clone(), inner, shared: Arc::clone(shared), holds_clock };
        builder = builder.register_handler(name, Arc::new(recorded));
    }
    builder.build_result()
}

/// A body that runs. It ends also if the runtime drops its future.
struct RunningBody(Arc<Shared>);

impl Drop for RunningBody {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.running_bodies = state.running_bodies.saturating_sub(1);
        drop(state);
        self.0.body_ended.notify_one();
    }
}

impl Recorded {
    /// Records that the body begins, and returns whether the test fails the activity after it. Returns an error if the test fails the
    /// activity instead of running it.
    fn begin(&self, ctx: &ActivityContext, input: &str) -> Result<bool, String> {
        let (shared, name) = (&self.shared, &self.activity);
        let (key, attempt) = (ctx.idempotency_key().to_string(), ctx.attempt());
        let number = {
            let mut state = shared.state();
            let known = state.keys.iter().position(|known| *known == key);
            if known.is_none() {
                state.keys.push(key.clone());
            }
            known.unwrap_or(state.keys.len() - 1)
        };
        let failing =
            shared.state().failing.filter(|(failing, _)| *failing == number).map(|(_, fault)| fault);
        if failing == Some(ActivityFault::InsteadOfRunning) {
            shared.note(|| format!("activity {name} fails, because the test says so"));
            return Err(INJECTED.to_string());
        }
        shared.note(|| format!("the body of {name} begins (delivery {attempt}, key {key})"));
        let at_ms = shared.clock.now_ms();
        let body = Body { activity: name.clone(), key, input: input.to_string(), at_ms };
        shared.state().bodies.push(body);
        Ok(failing.is_some())
    }

    /// The error of an activity whose body has returned.
    fn fail_after_body(&self) -> String {
        let name = &self.activity;
        self.shared.note(|| format!("activity {name} fails after its body, because the test says so"));
        INJECTED.to_string()
    }

    /// Counts the body as running until the value is dropped.
    fn running(&self) -> RunningBody {
        self.shared.state().running_bodies += 1;
        RunningBody(Arc::clone(&self.shared))
    }

    fn note_end(&self, result: Result<&str, &str>) {
        let name = &self.activity;
        self.shared.note(|| match result {
            Ok(value) => format!("the body of {name} returns {value}"),
            Err(error) => format!("the body of {name} fails: {}", plain_text(error)),
        });
    }
}

#[async_trait]
impl ActivityHandler for Recorded {
    async fn invoke(&self, ctx: ActivityContext, input: String) -> Result<String, String> {
        let fails_after = self.begin(&ctx, &input)?;
        let _running = self.running();
        let _held = self.holds_clock.then(hold_clock);
        let result = self.inner.invoke(ctx, input).await;
        self.note_end(result.as_deref().map_err(String::as_str));
        match result {
            Ok(_) if fails_after => Err(self.fail_after_body()),
            result => result,
        }
    }

    async fn attempt(&self, ctx: ActivityContext, input: String) -> Attempt {
        let fails_after = match self.begin(&ctx, &input) {
            Ok(fails_after) => fails_after,
            Err(error) => return Attempt::Done(Err(error)),
        };
        let _running = self.running();
        let _held = self.holds_clock.then(hold_clock);
        let attempt = self.inner.attempt(ctx, input).await;
        self.note_end(match &attempt {
            Attempt::Done(result) => result.as_deref().map_err(String::as_str),
            Attempt::Retry { error, .. } => Err(error),
        });
        match attempt {
            Attempt::Done(Ok(_)) if fails_after => Attempt::Done(Err(self.fail_after_body())),
            attempt => attempt,
        }
    }
}

/// Holds virtual time until the returned value is dropped: tokio's paused clock does not advance while a blocking task runs.
fn hold_clock() -> mpsc::Sender<()> {
    let (held, released) = mpsc::channel();
    tokio::task::spawn_blocking(move || released.recv());
    held
}
