//! One call to the store, and what befalls it.

use crate::fault::Fault;
use crate::shared::Shared;
use outlast_provider::ProviderError;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Who calls: a node, or a client.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) name: String,
    pub(crate) node: Option<usize>,
}

/// What is asked of the store, and what goes wrong with it.
pub(crate) struct Call {
    pub(crate) op: &'static str,
    /// For the trace.
    pub(crate) detail: String,
    pub(crate) fault: Option<Fault>,
}

/// A call on its way. Dropping it before its end is how a crash looks from here.
struct Flight<'a> {
    shared: &'a Shared,
    caller: &'a Caller,
    op: &'static str,
    detail: String,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The store has not seen it.
    Before,
    /// The store has done it.
    Made,
    /// The store has refused it, or it brought nothing.
    Idle,
    /// The caller has its answer, or somebody has counted why not.
    Done,
}

impl Shared {
    /// Makes a call. `show` describes an answer, or says with `None` that it is not worth a fault or a line.
    pub(crate) async fn call<T>(
        &self,
        caller: &Caller,
        Call { op, detail, fault }: Call,
        show: impl Fn(&T) -> Option<String>,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        self.tally().called(op);
        if self.is_runaway() {
            self.fail(format!("I7: runaway: {} calls {op} again and again: {detail}", caller.name));
            std::future::pending::<()>().await;
        }
        let mut flight = Flight { shared: self, caller, op, detail, stage: Stage::Before };
        match fault {
            Some(fault @ Fault::ErrorBefore) => return Err(flight.error(fault)),
            Some(fault @ Fault::StallBefore) => flight.pause(fault, self.draw_stall_ms()).await,
            Some(fault @ Fault::CrashBefore) => flight.crash(fault).await,
            _ => latency(self.draw_latency_ms()).await,
        }
        let answer = call.await;
        let shown = match &answer {
            Ok(value) => show(value),
            Err(error) => {
                flight.note(&format!("refused: {}", self.backend.without_folder(&error.message)));
                None
            }
        };
        let Some(shown) = shown else {
            flight.stage = Stage::Idle;
            latency(self.draw_latency_ms()).await;
            flight.stage = Stage::Done;
            return answer;
        };
        flight.stage = Stage::Made;
        flight.note(&shown);
        match fault {
            // These are the work of the call itself.
            Some(fault @ (Fault::ShortLease | Fault::Duplicate)) => {
                flight.inject(fault);
                latency(self.draw_latency_ms()).await;
            }
            Some(fault @ Fault::LostAnswer) => return Err(flight.error(fault)),
            Some(fault @ Fault::StallAfter) => flight.pause(fault, self.draw_stall_ms()).await,
            Some(fault @ Fault::CrashAfter) => flight.crash(fault).await,
            _ => latency(self.draw_latency_ms()).await,
        }
        flight.stage = Stage::Done;
        answer
    }
}

/// Zero is not even a yield: worlds without latency run in larger steps.
async fn latency(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

impl Flight<'_> {
    fn note(&self, text: &str) {
        self.shared.note(&self.caller.name, &format!("{} {} -> {text}", self.op, self.detail));
    }

    fn inject(&mut self, fault: Fault) {
        self.note(fault.name());
        // A fetch that is dropped before it was made is how a process begins to stop: no excuse for anything.
        if let Some(node) = self.caller.node.filter(|_| fault != Fault::CutBefore) {
            self.shared.trouble(node);
        }
        let in_doubt = self.stage == Stage::Made && fault.hides_the_answer() && is_commit(self.op);
        let mut tally = self.shared.tally();
        tally.injected(self.op, fault);
        tally.commits_in_doubt += u64::from(in_doubt);
    }

    fn error(&mut self, fault: Fault) -> ProviderError {
        self.inject(fault);
        self.stage = Stage::Done;
        ProviderError::retryable(self.op, fault.name())
    }

    async fn pause(&mut self, fault: Fault, ms: u64) {
        self.inject(fault);
        latency(ms).await;
    }

    /// The process dies here; nobody will poll this again.
    async fn crash(&mut self, fault: Fault) {
        self.inject(fault);
        self.stage = Stage::Done;
        if let Some(node) = self.caller.node {
            self.shared.kill[node].notify_one();
        }
        std::future::pending::<()>().await;
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if self.shared.over.load(Relaxed) {
            return;
        }
        match self.stage {
            Stage::Done | Stage::Idle => {}
            Stage::Before => self.inject(Fault::CutBefore),
            Stage::Made => self.inject(Fault::CutAfter),
        }
    }
}

fn is_commit(op: &str) -> bool {
    matches!(op, "ack_turn" | "ack_work" | "ack_ahead")
}
