//! What clients do: start, send, cancel, wait; again and again until they are told that it was done. And look.

use crate::plan::{Act, Root};
use crate::program::{self, act, act::Done};
use crate::shared::Shared;
use crate::store::FaultyStore;
use outlast_runtime::{Client, ClientError, OrchestrationStatus};
use std::sync::Arc;
use std::time::Duration;

/// Instances that nobody ever starts have ids that begin so.
pub(crate) const STRAY: &str = "stray";

fn client(shared: &Arc<Shared>) -> Client {
    Client::new(FaultyStore::for_client(shared)).with_codec(program::codec(shared.plan.seed))
}

/// Drives one instance to its end; returns how it ended.
pub(crate) async fn drive(shared: Arc<Shared>, root: Root) -> (Root, OrchestrationStatus) {
    let driver = Driver { client: client(&shared), shared };
    let mut sent = 0;
    for (at, act) in &root.acts {
        driver.until(*at).await;
        while let Err(error) = driver.perform(&root, act, &mut sent).await {
            driver.excuse(&root.instance, &error).await;
        }
    }
    let status = driver.wait(&root.instance).await;
    driver.shared.must(act::after_the_end(&driver.client, &root, &status).await);
    (root, status)
}

/// Starts the same instance as another client, if ids may be started twice in this way.
pub(crate) async fn rival(shared: Arc<Shared>, root: Root) {
    let Some((at, Act::StartOnce(None))) = root.acts.first() else { return };
    let driver = Driver { client: client(&shared), shared };
    let early = driver.shared.dice().below(200);
    driver.until((at + 100).saturating_sub(early)).await;
    while let Err(error) = driver.perform(&root, &Act::StartOnce(None), &mut 0).await {
        driver.excuse(&root.instance, &error).await;
    }
}

/// Sends to instances that do not exist, which must hurt nobody.
pub(crate) async fn stray(shared: Arc<Shared>, nth: usize, at: u64) {
    let driver = Driver { client: client(&shared), shared };
    driver.until(at).await;
    let instance = format!("{STRAY}{nth}");
    for attempt in 0.. {
        let sent = match nth.is_multiple_of(2) {
            true => driver.client.cancel_instance(&instance, "mistyped").await,
            false => driver.client.raise_event(&instance, "mistyped", format!("{instance}.{attempt}")).await,
        };
        match sent {
            Ok(()) => return,
            Err(error) => driver.excuse(&instance, &error).await,
        }
    }
}

/// Asks how things are, all the time.
pub(crate) async fn look(shared: Arc<Shared>) {
    let driver = Driver { client: client(&shared), shared };
    let roots = &driver.shared.plan.roots;
    if roots.is_empty() {
        return;
    }
    loop {
        driver.rest().await;
        let nth = driver.shared.dice().below(roots.len() as u64);
        let Some(root) = usize::try_from(nth).ok().and_then(|nth| roots.get(nth)) else { continue };
        driver.ask(&root.instance).await;
    }
}

struct Driver {
    shared: Arc<Shared>,
    client: Client,
}

impl Driver {
    async fn until(&self, at: u64) {
        let pause = at.saturating_sub(self.shared.now_ms());
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }

    async fn rest(&self) {
        let pause = self.shared.dice().between(20, 500);
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }

    /// A passing error is a reason to try again, and no other is allowed.
    async fn excuse(&self, instance: &str, error: &ClientError) {
        if !error.is_retryable() {
            self.shared.fail(format!("I11: a client's call for '{instance}' was refused: {error}"));
        }
        self.rest().await;
    }

    async fn ask(&self, instance: &str) {
        let floor = self.shared.control().latest(instance);
        if let Ok(status) = self.client.get_orchestration_status(instance).await {
            let told = self.shared.control().told(instance, &floor, status);
            self.shared.must(told);
        }
    }

    async fn wait(&self, instance: &str) -> OrchestrationStatus {
        loop {
            let floor = self.shared.control().latest(instance);
            if let Ok(status) = self.client.wait_for_orchestration(instance, Duration::from_secs(5)).await {
                let told = self.shared.control().told(instance, &floor, status.clone());
                self.shared.must(told);
                return status;
            }
            self.rest().await;
        }
    }

    /// Every try has data of its own, so that two deliveries of one cannot be taken for one delivery of two.
    async fn perform(&self, root: &Root, act: &Act, sent: &mut u64) -> Result<(), ClientError> {
        *sent += 1;
        if act.perform(&self.client, root, *sent).await? == Done::Started {
            let started = self.shared.control().started(&root.instance);
            self.shared.must(started);
        }
        Ok(())
    }
}
