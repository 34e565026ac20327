//! Compensation: the steps that undo what an orchestration has done.

use crate::call_error::{CallError, Callee};
use crate::cancel::{Registry, Shielded};
use crate::definition::Activity;
use crate::failure::{self, Failure};
use crate::payload::Payload;
use outlast_engine::layer::{self, Site};
use outlast_engine::{DurableFuture, OrchestrationContext};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// The steps that undo what an orchestration has done, for sagas.
///
/// ```
/// # use outlast::prelude::*;
/// # #[outlast::activity]
/// # async fn reserve(_ctx: ActivityContext, _order: String) -> Result<(), String> { Ok(()) }
/// # #[outlast::activity]
/// # async fn release(_ctx: ActivityContext, _order: String) -> Result<(), String> { Ok(()) }
/// # #[outlast::activity]
/// # async fn charge(_ctx: ActivityContext, _order: String) -> Result<String, String> { Err("declined".into()) }
/// #[outlast::orchestration]
/// async fn fulfil(ctx: OrchestrationContext, order: String) -> outlast::Result<String> {
///     let mut undo = Undo::new(&ctx);
///     match steps(&ctx, &mut undo, order).await {
///         Ok(receipt) => Ok(receipt),
///         Err(error) => undo.fail(error).await,
///     }
/// }
///
/// /// Each undo is pushed before its call: an activity that fails may have done its work.
/// #[outlast::deterministic]
/// async fn steps(ctx: &OrchestrationContext, undo: &mut Undo, order: String) -> outlast::Result<String> {
///     undo.push::<release>(order.clone());
///     reserve::call(ctx, order.clone()).await?;
///     Ok(charge::call(ctx, order).await?)
/// }
/// # fn main() {}
/// ```
///
/// In an orchestration with `on_cancel = undo`, the steps run by themselves when a request to cancel arrives.
#[must_use = "nothing is undone until `.fail(cause)` or `.run()` is awaited"]
pub struct Undo {
    ctx: OrchestrationContext,
    /// The steps are there, so that they outlive the body of a cancelled orchestration.
    registry: Arc<Registry>,
    number: u64,
}

pub(crate) struct Step {
    activity: &'static str,
    tag: Option<&'static str>,
    callee: Callee,
    /// The error if the input does not encode.
    input: Result<String, String>,
    site: Site,
}

/// The steps of an [`Undo`] that failed. The other steps ran.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UndoFailed {
    /// The activities that failed, in the order in which they ran, each with its error.
    pub failures: Vec<(String, String)>,
    /// The error for which the steps ran, as text with its causes: the error that [`Undo::fail`] got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// Prints the sentence of `Display`, because `unwrap` and a `main` that returns an error print `Debug`.
impl fmt::Debug for UndoFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UndoFailed").field(&self.to_string()).finish()
    }
}

impl fmt::Display for UndoFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(cause) = &self.cause {
            write!(f, "{cause}, and ")?;
        }
        f.write_str("not undone")?;
        self.failures.iter().try_for_each(|(activity, error)| write!(f, "; {activity}: {error}"))
    }
}

impl std::error::Error for UndoFailed {}

impl Failure for UndoFailed {}

impl Undo {
    /// No steps.
    pub fn new(ctx: &OrchestrationContext) -> Self {
        let registry = Registry::of(ctx);
        Self { ctx: ctx.clone(), number: registry.add(), registry }
    }

    /// Adds an activity, which [`Undo::run`] calls with this input before the steps that were added earlier. Push it before the call that
    /// it undoes: an activity that fails or times out may have done its work.
    #[track_caller]
    pub fn push<A: Activity>(&mut self, input: A::Input) {
        let step = Step {
            activity: A::NAME,
            tag: A::policy().tag,
            callee: if A::TEXT_ERRORS { Callee::OfText } else { Callee::Activity },
            input: input.encode(self.ctx.codec()),
            site: Location::caller(),
        };
        self.registry.push(self.number, step);
    }

    /// The number of steps.
    pub fn len(&self) -> usize {
        self.registry.len(self.number)
    }

    /// Whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets the steps: what was done stays. Dropping it does the same. The call matters in an orchestration with `on_cancel = undo`
    /// that goes on after its last step, because a request to cancel runs the steps of every `Undo` that still exists. Elsewhere it
    /// says that nothing is to be undone.
    pub fn forget(self) {}

    /// Runs the steps, the newest first, one after the other. A step that fails does not keep the others from running. A request to
    /// cancel does not interrupt them.
    ///
    /// # Errors
    ///
    /// [`CallError::Failed`] with the steps that failed.
    pub async fn run(self) -> Result<(), CallError<UndoFailed>> {
        let steps = self.registry.take(self.number);
        Shielded::new(&self.ctx, run(&self.ctx, steps)).await.map_err(CallError::Failed)
    }

    /// Runs the steps as [`Undo::run`] does, because the orchestration fails with `cause`: `return undo.fail(error).await`.
    ///
    /// # Errors
    ///
    /// The cause as it is if every step ran. Otherwise an error made from an [`UndoFailed`] that has the text of the cause and the steps
    /// that failed. So code that matches on the cause can rely on the undo.
    pub async fn fail<T, E>(self, cause: E) -> Result<T, E>
    where
        E: fmt::Display + From<CallError<UndoFailed>>,
    {
        let steps = self.registry.take(self.number);
        Err(match Shielded::new(&self.ctx, run(&self.ctx, steps)).await {
            Ok(()) => cause,
            // The alternate form of `outlast::Error` has its causes.
            Err(failed) => {
                CallError::Failed(UndoFailed { cause: Some(format!("{cause:#}")), ..failed }).into()
            }
        })
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        drop(self.registry.take(self.number));
    }
}

/// Runs steps, the newest first, one after the other.
pub(crate) async fn run(ctx: &OrchestrationContext, steps: Vec<Step>) -> Result<(), UndoFailed> {
    let mut failures = Vec::new();
    for step in steps.into_iter().rev() {
        if let Err(error) = step.run(ctx).await {
            failures.push(error);
        }
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(UndoFailed { failures, cause: None }),
    }
}

impl Step {
    async fn run(self, ctx: &OrchestrationContext) -> Result<(), (String, String)> {
        let failed = |text: String| (self.activity.to_string(), text);
        let input = self.input.map_err(|error| failed(format!("the input does not encode: {error}")))?;
        let activity: DurableFuture<_> = layer::activity(ctx, self.activity, input, None, self.site);
        if let Some(tag) = self.tag {
            layer::set_default_tag(&activity, tag);
        }
        match activity.await {
            Ok(_) => Ok(()),
            Err(details) => {
                let error: CallError<String> = CallError::of(*details, self.callee, ctx.codec());
                Err(failed(failure::plain_text(&error.to_string())))
            }
        }
    }
}
