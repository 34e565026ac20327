//! Paused orchestrations: one document of the store, changed under its version. A runtime reads this document once per second while
//! the runtime runs turns. The read is a single request, and sees every acknowledged write.

use crate::client::Op;
use crate::doubt::{Refusal, Verdict};
use crate::ids::Uid;
use crate::layout;
use crate::number;
use crate::store::Store;
use outlast_model::defect::{self, Defect};
use outlast_provider::{HoldOutcome, PausedOrchestration, ProviderError, ReleaseOutcome};
use serde::{Deserialize, Serialize};

const PAUSE: &str = "pause_orchestration";
const RESUME: &str = "resume_orchestration";
const LIST: &str = "paused_orchestrations";

/// The id of the document.
const ID: &str = "p";

/// The number of attempts to write the document while other processes change it or its last write is in doubt.
const ATTEMPTS: usize = 8;

/// All paused orchestrations: `t = "p"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Paused {
    id: String,
    #[serde(rename = "instanceId")]
    partition: String,
    t: String,
    /// Not indexed.
    d: Vec<Entry>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    name: String,
    actor: String,
    reason: String,
    #[serde(with = "number")]
    at: u64,
    /// The write that added the entry. Its writer recognises it after an answer was lost.
    write: Uid,
}

impl Store {
    /// Adds an orchestration to the set of paused orchestrations.
    pub(crate) async fn pause_orchestration(
        &self,
        orchestration: &str,
        actor: &str,
        reason: &str,
    ) -> Result<HoldOutcome, ProviderError> {
        let entry = Entry {
            name: orchestration.to_string(),
            actor: actor.to_string(),
            reason: reason.to_string(),
            at: self.now(),
            write: self.uid(),
        };
        for _ in 0..ATTEMPTS {
            let (etag, mut entries) = self.read_paused(PAUSE).await?;
            if defect::is_on(Defect::PauseReplacesPause) {
                entries.retain(|found| found.name != orchestration || found.write == entry.write);
            }
            match entries.iter().find(|found| found.name == orchestration) {
                Some(found) if found.write == entry.write => return Ok(HoldOutcome::Held),
                Some(_) => return Ok(HoldOutcome::AlreadyHeld),
                None => entries.push(entry.clone()),
            }
            if self.write_paused(PAUSE, etag, entries).await? == Verdict::Applied {
                return Ok(HoldOutcome::Held);
            }
        }
        Err(contended(PAUSE))
    }

    /// Removes an orchestration from the set of paused orchestrations.
    pub(crate) async fn resume_orchestration(
        &self,
        orchestration: &str,
    ) -> Result<ReleaseOutcome, ProviderError> {
        let mut in_doubt = false;
        for _ in 0..ATTEMPTS {
            let (etag, mut entries) = self.read_paused(RESUME).await?;
            let count = entries.len();
            entries.retain(|found| found.name != orchestration);
            if entries.len() == count {
                return Ok(if in_doubt { ReleaseOutcome::Released } else { ReleaseOutcome::NotHeld });
            }
            match self.write_paused(RESUME, etag, entries).await? {
                Verdict::Applied => return Ok(ReleaseOutcome::Released),
                Verdict::InDoubt => in_doubt = true,
                Verdict::Refused(_) => {}
            }
        }
        Err(contended(RESUME))
    }

    /// The paused orchestrations by ascending name.
    pub(crate) async fn paused_orchestrations(&self) -> Result<Vec<PausedOrchestration>, ProviderError> {
        let (_, mut entries) = self.read_paused(LIST).await?;
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        let paused = |Entry { name, actor, reason, at, .. }: Entry| PausedOrchestration {
            orchestration: name,
            actor,
            reason,
            paused_at_ms: at,
        };
        Ok(entries.into_iter().map(paused).collect())
    }

    /// The entries and the version of the document; no version if it does not exist.
    async fn read_paused(&self, operation: &str) -> Result<(Option<String>, Vec<Entry>), ProviderError> {
        let read = self.client.read::<Paused>(operation, layout::SYSTEM, ID).await?;
        Ok(read.map_or((None, Vec::new()), |read| (Some(read.etag), read.document.d)))
    }

    /// Writes the document unless it changed since it was read. A refusal for another reason is an error.
    async fn write_paused(
        &self,
        operation: &str,
        etag: Option<String>,
        entries: Vec<Entry>,
    ) -> Result<Verdict, ProviderError> {
        let document = Paused {
            id: ID.to_string(),
            partition: layout::SYSTEM.to_string(),
            t: "p".to_string(),
            d: entries,
        };
        let write = match &etag {
            Some(etag) => Op::replace(ID, &document, Some(etag))?,
            None => Op::create(&document)?,
        };
        let batched = self.client.batch(layout::SYSTEM, vec![write]).await?;
        match batched.verdict() {
            Verdict::Refused(Refusal::Later | Refusal::Permanent) => Err(batched.error(operation)),
            verdict => Ok(verdict),
        }
    }
}

fn contended(operation: &str) -> ProviderError {
    ProviderError::retryable(operation, "the set of paused orchestrations changes too often: try again")
}
