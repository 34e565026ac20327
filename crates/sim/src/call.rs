//! One call to the store, with the fault that is injected into it.

use crate::fault::Fault;
use crate::shared::Shared;
use outlast_provider::ProviderError;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The caller: a node, or a client.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) name: String,
    pub(crate) node: Option<usize>,
}

/// A call to the store and its fault.
pub(crate) struct Call {
    pub(crate) op: &'static str,
    /// For the trace.
    pub(crate) detail: String,
    pub(crate) fault: Option<Fault>,
}

/// A call in progress. Dropping it before its end has the effect of a crash.
struct CallInProgress<'a> {
    shared: &'a Shared,
    caller: &'a Caller,
    op: &'static str,
    detail: String,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The store has not received the call.
    Before,
    /// The store has performed the call.
    Made,
    /// The store has refused the call, or the call returned nothing.
    Idle,
    /// The caller has its answer, or a fault that hides the answer is already counted.
    Done,
}

impl Shared {
    /// Makes a call. `show` describes the answer for the trace; if it returns `None`, the answer gets no fault and no
    /// trace line.
    pub(crate) async fn call<T>(
        &self,
        caller: &Caller,
        Call { op, detail, fault }: Call,
        show: impl Fn(&T) -> Option<String>,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        self.tally().called(op);
        if self.is_runaway() {
            self.fail(format!("I7: runaway: {} calls {op} without end: {detail}", caller.name));
            std::future::pending::<()>().await;
        }
        let mut in_progress = CallInProgress { shared: self, caller, op, detail, stage: Stage::Before };
        match fault {
            Some(fault @ Fault::ErrorBefore) => return Err(in_progress.error(fault)),
            Some(fault @ Fault::StallBefore) => in_progress.pause(fault, self.draw_stall_ms()).await,
            Some(fault @ Fault::CrashBefore) => in_progress.crash(fault).await,
            _ => latency(self.draw_latency_ms()).await,
        }
        if !READS.contains(&op) && self.plan.waits_for_lock && self.backend.is_busy() {
            self.tally().calls_at_busy_files += 1;
            self.backend.free().await;
        }
        let answer = call.await;
        if let Err(error) = &answer
            && is_about_a_lock(&error.message)
        {
            self.refused_as_busy(op, &error.message);
        }
        let shown = match &answer {
            Ok(value) => show(value),
            Err(error) => {
                in_progress.note(&format!("refused: {}", self.backend.without_folder(&error.message)));
                None
            }
        };
        let Some(shown) = shown else {
            in_progress.stage = Stage::Idle;
            latency(self.draw_latency_ms()).await;
            in_progress.stage = Stage::Done;
            return answer;
        };
        in_progress.stage = Stage::Made;
        in_progress.note(&shown);
        match fault {
            // The call itself injects these faults.
            Some(fault @ (Fault::ShortLease | Fault::Duplicate)) => {
                in_progress.inject(fault);
                latency(self.draw_latency_ms()).await;
            }
            Some(fault @ Fault::LostAnswer) => return Err(in_progress.error(fault)),
            Some(fault @ Fault::StallAfter) => in_progress.pause(fault, self.draw_stall_ms()).await,
            Some(fault @ Fault::CrashAfter) => in_progress.crash(fault).await,
            _ => latency(self.draw_latency_ms()).await,
        }
        in_progress.stage = Stage::Done;
        answer
    }
}

impl Shared {
    /// Counts a call that a busy file refused. The message of a failed statement is the same.
    fn refused_as_busy(&self, op: &str, message: &str) {
        let message = self.backend.without_folder(message);
        if READS.contains(&op) {
            self.fail(format!("B1: a read needs the lock that another process holds: {message}"));
        }
        self.tally().calls_at_busy_files += u64::from(self.backend.is_busy());
    }
}

/// The calls that change nothing. A busy file does not disturb them.
const READS: [&str; 3] = ["load_turn", "read", "read_outcome"];

/// Whether an error of the store says that another process holds the lock of the file.
pub(crate) fn is_about_a_lock(error: &str) -> bool {
    error.contains("the store is busy")
}

/// A latency of zero does not yield: worlds without latency run larger steps.
async fn latency(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

impl CallInProgress<'_> {
    fn note(&self, text: &str) {
        self.shared.note(&self.caller.name, &format!("{} {} -> {text}", self.op, self.detail));
    }

    fn inject(&mut self, fault: Fault) {
        self.note(fault.name());
        // A runtime that shuts down drops its fetches, so a fetch that is dropped before it was made does not excuse a
        // lost lease.
        if let Some(node) = self.caller.node.filter(|_| fault != Fault::CutBefore) {
            self.shared.disturb(node);
        }
        let in_doubt = self.stage == Stage::Made && fault.hides_answer() && is_commit(self.op);
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

    /// Crashes the node. This future is never polled again.
    async fn crash(&mut self, fault: Fault) {
        self.inject(fault);
        self.stage = Stage::Done;
        if let Some(node) = self.caller.node {
            self.shared.kill[node].notify_one();
        }
        std::future::pending::<()>().await;
    }
}

impl Drop for CallInProgress<'_> {
    /// Counts a call that its caller drops as a fault: cut before or after the store made it.
    fn drop(&mut self) {
        if self.shared.is_torn_down.load(Relaxed) {
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
    matches!(op, "ack_turn" | "ack_work" | "ack_ahead" | "ack_fused" | "start_ahead")
}
