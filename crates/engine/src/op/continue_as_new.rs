//! Continue-as-new: the execution ends and the next one of the instance begins with an empty history.

use crate::context::OrchestrationContext;
use crate::decide::Successor;
use crate::state::Site;
use serde::Serialize;
use std::panic::Location;

impl OrchestrationContext {
    /// Ends this execution and begins the next with a new input, on the version that the registry's policy names then.
    /// The future never resolves: `return ctx.continue_as_new(input).await`.
    #[track_caller]
    pub fn continue_as_new(&self, input: impl Into<String>) -> impl Future<Output = Result<String, String>> {
        self.succeed(input.into(), None, Location::caller());
        std::future::pending()
    }

    /// Continues as new with a typed input.
    #[track_caller]
    pub fn continue_as_new_typed<In: Serialize>(
        &self,
        input: &In,
    ) -> impl Future<Output = Result<String, String>> {
        self.succeed(self.encoded(input, "input of the next execution"), None, Location::caller());
        std::future::pending()
    }

    /// Continues as new on a given version of the orchestration.
    #[track_caller]
    pub fn continue_as_new_versioned(
        &self,
        version: impl Into<String>,
        input: impl Into<String>,
    ) -> impl Future<Output = Result<String, String>> {
        self.succeed(input.into(), Some(version.into()), Location::caller());
        std::future::pending()
    }

    fn succeed(&self, input: String, version: Option<String>, site: Site) {
        let mut state = self.lock();
        state.last_call = Some(("continue_as_new", site));
        let name = &self.identity().name;
        state.check_payload("input of the next execution of", name, &input);
        if state.successor.is_none() {
            state.successor = Some(Successor { input, version });
        }
    }
}
