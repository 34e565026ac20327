//! The clients of a world: they start, send, cancel and wait, and repeat each call until it is acknowledged.

use crate::life::Life;
use crate::plan::{Action, Root};
use crate::program::{self, action, action::ActionResult};
use crate::shared::Shared;
use crate::store::FaultyStore;
use outlast_runtime::{Client, ClientError, OrchestrationStatus};
use std::sync::Arc;
use std::time::Duration;

/// Prefix of the ids of instances that are never started.
pub(crate) const STRAY: &str = "stray";

fn client(shared: &Arc<Shared>) -> Client {
    Client::new(FaultyStore::for_client(shared)).with_codec(program::codec(shared.plan.seed))
}

/// Drives one root to its end; returns its final status.
pub(crate) async fn drive(shared: Arc<Shared>, root: Root) -> (Root, OrchestrationStatus) {
    let driver = Driver { client: client(&shared), shared };
    let mut sent = 0;
    for (at, action) in &root.actions {
        driver.sleep_until(*at).await;
        while let Err(error) = driver.perform(&root, action, &mut sent).await {
            driver.retry_later(&root.instance, &error).await;
        }
    }
    let status = driver.wait(&root.instance).await;
    driver.shared.require(action::after_the_end(&driver.client, &root, &status).await);
    (root, status)
}

/// Starts the same root from a second client, if the start leaves a running instance unchanged.
pub(crate) async fn start_concurrently(shared: Arc<Shared>, root: Root) {
    let Some((at, Action::StartOnce(None))) = root.actions.first() else { return };
    let driver = Driver { client: client(&shared), shared };
    let early = driver.shared.rng().below(200);
    driver.sleep_until((at + 100).saturating_sub(early)).await;
    while let Err(error) = driver.perform(&root, &Action::StartOnce(None), &mut 0).await {
        driver.retry_later(&root.instance, &error).await;
    }
}

/// Sends messages to an instance that is never started. They must not affect other instances.
pub(crate) async fn send_to_missing_instance(shared: Arc<Shared>, nth: usize, at: u64) {
    let driver = Driver { client: client(&shared), shared };
    driver.sleep_until(at).await;
    let instance = format!("{STRAY}{nth}");
    for attempt in 0.. {
        let sent = match nth.is_multiple_of(2) {
            true => driver.client.cancel_instance(&instance, "mistyped").await,
            false => driver.client.raise_event(&instance, "mistyped", format!("{instance}.{attempt}")).await,
        };
        match sent {
            Ok(()) => return,
            Err(error) => driver.retry_later(&instance, &error).await,
        }
    }
}

/// Reads the status of random roots all the time.
pub(crate) async fn poll_statuses(shared: Arc<Shared>) {
    let driver = Driver { client: client(&shared), shared };
    let roots = &driver.shared.plan.roots;
    if roots.is_empty() {
        return;
    }
    loop {
        let pause = driver.shared.rng().between(100, 1_500);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let nth = driver.shared.rng().below(roots.len() as u64);
        let Some(root) = usize::try_from(nth).ok().and_then(|nth| roots.get(nth)) else { continue };
        driver.read_status(&root.instance).await;
    }
}

/// Pauses the orchestrations of all programs for some time, and resumes them.
pub(crate) async fn pause_orchestrations(shared: Arc<Shared>, at: u64, ms: u64) {
    let driver = Driver { client: client(&shared), shared };
    driver.sleep_until(at).await;
    for orchestration in program::ORCHESTRATIONS {
        while driver.client.pause_orchestration(orchestration, "sim", "").await.is_err() {
            driver.pause().await;
        }
    }
    driver.shared.note("WORLD", "all orchestrations are paused");
    tokio::time::sleep(Duration::from_millis(ms)).await;
    driver.shared.note("WORLD", "all orchestrations are resumed");
    for orchestration in program::ORCHESTRATIONS {
        while driver.client.resume_orchestration(orchestration, "sim", "").await.is_err() {
            driver.pause().await;
        }
    }
}

struct Driver {
    shared: Arc<Shared>,
    client: Client,
}

impl Driver {
    async fn sleep_until(&self, at: u64) {
        let pause = at.saturating_sub(self.shared.now_ms());
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }

    async fn pause(&self) {
        let pause = self.shared.rng().between(20, 500);
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }

    /// Fails the world unless the call may be repeated, and then waits before the next try. A pause or resumption that was made and not
    /// recorded may be repeated: its repetition changes nothing.
    async fn retry_later(&self, instance: &str, error: &ClientError) {
        if !error.is_retryable() && !error.change_was_made() {
            self.shared.fail(format!("I11: a call of a client for '{instance}' was refused: {error}"));
        }
        self.pause().await;
    }

    /// Reads a status and checks it against the latest status that any client received.
    async fn read_status(&self, instance: &str) {
        let floor = self.shared.client_answers().latest(instance);
        if let Ok(status) = self.client.get_orchestration_status(instance).await {
            self.answered(instance, &floor, status);
        }
    }

    /// Checks an answer against the latest answer. A reset makes an instance run again that has ended.
    fn answered(&self, instance: &str, floor: &OrchestrationStatus, status: OrchestrationStatus) {
        if self.shared.plan.source_of(instance).is_none() {
            let checked = self.shared.client_answers().answered(instance, floor, status);
            self.shared.require(checked);
        }
    }

    async fn wait(&self, instance: &str) -> OrchestrationStatus {
        loop {
            let floor = self.shared.client_answers().latest(instance);
            if let Ok(status) = self.client.wait_for_orchestration(instance, Duration::from_secs(1)).await {
                self.answered(instance, &floor, status.clone());
                return status;
            }
            // A client of another process polls the store while it waits, so most clients wait a part of the time only.
            let pause = self.shared.rng().between(500, 2_500);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }

    /// Performs an action. Every try has its own data, so that a message delivered twice differs from two messages.
    async fn perform(&self, root: &Root, action: &Action, sent: &mut u64) -> Result<(), ClientError> {
        let result = loop {
            *sent += 1;
            match self.process_for(action) {
                None => break action.perform(&self.client, root, *sent).await?,
                // The client ends with its process, and another one repeats the call.
                Some(process) => match self.perform_in(&process, root, action, *sent).await {
                    Some(result) => break result?,
                    None => self.pause().await,
                },
            }
        };
        match result {
            ActionResult::Done => {}
            ActionResult::StartedInstance => {
                let started = self.shared.client_answers().claimed_start(&root.instance);
                self.shared.require(started);
            }
            ActionResult::Recorded(entry, wanted) => {
                let found = self.shared.performed().audit.stored(&entry);
                let recorded = (found == wanted)
                    .then_some(())
                    .ok_or_else(|| format!("I16: {found} records instead of {wanted} of {entry:?}"));
                self.shared.require(recorded);
            }
            ActionResult::Copied(copied) => {
                self.shared.tally().resets += 1;
                self.shared.performed().copied.push(copied);
            }
        }
        Ok(())
    }

    /// The process whose local client performs the action, if one does.
    fn process_for(&self, action: &Action) -> Option<Arc<Life>> {
        let may_be_local = self.shared.plan.has_local_clients && action.is_plain_start();
        let is_local = may_be_local && self.shared.rng().per_mille(700);
        let up = if is_local { self.shared.lives.up() } else { Vec::new() };
        if up.is_empty() {
            return None;
        }
        let nth = self.shared.rng().index(up.len());
        up.into_iter().nth(nth)
    }

    /// Performs an action in a process; `None` if the process ends first.
    async fn perform_in(
        &self,
        process: &Life,
        root: &Root,
        action: &Action,
        sent: u64,
    ) -> Option<Result<ActionResult, ClientError>> {
        let client = Client::new(process.store()).with_codec(program::codec(self.shared.plan.seed));
        tokio::select! {
            biased;
            () = process.ended() => None,
            result = action.perform(&client, root, sent) => Some(result),
        }
    }
}
