//! Starting instances.

use super::{Client, ClientError};
use crate::dispatch::eager;
use outlast_model::{INITIAL_EXECUTION_ID, WorkItem};
use serde::Serialize;

impl Client {
    /// Queues the start of an instance. `Ok` means that the start is stored, not that the instance ran.
    ///
    /// If an instance with this id exists, the runtime ignores this start; the call still returns `Ok`. Use
    /// [`Client::start_request`] to learn whether the instance existed. The client does not check whether a runtime has the orchestration.
    ///
    /// If a runtime of this process uses the same store object, this call may run the first turn of the instance: the store then
    /// commits start and turn in one step.
    ///
    /// Cancellation safety: when the future is dropped, the start is stored or it is not.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidInput`] for an id that is empty, longer than 512 bytes, has control characters or uses the
    /// marker `sub::` of generated children, and for a name or input above the limits.
    pub async fn start_orchestration(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.enqueue_start(instance.into(), orchestration.into(), None, input.into()).await
    }

    /// [`Client::start_orchestration`] with a version instead of the version that the runtime's policy selects.
    ///
    /// Cancellation safety: when the future is dropped, the start is stored or it is not.
    pub async fn start_orchestration_versioned(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        version: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.enqueue_start(instance.into(), orchestration.into(), Some(version.into()), input.into()).await
    }

    /// [`Client::start_orchestration`] with a typed value, or a reference to one, as input.
    ///
    /// Cancellation safety: when the future is dropped, the start is stored or it is not.
    pub async fn start_orchestration_typed<In: Serialize>(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: In,
    ) -> Result<(), ClientError> {
        let input = self.encoded(&input)?;
        self.enqueue_start(instance.into(), orchestration.into(), None, input).await
    }

    /// [`Client::start_orchestration_versioned`] with a typed value as input.
    ///
    /// Cancellation safety: when the future is dropped, the start is stored or it is not.
    pub async fn start_orchestration_versioned_typed<In: Serialize>(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        version: impl Into<String>,
        input: In,
    ) -> Result<(), ClientError> {
        let input = self.encoded(&input)?;
        self.enqueue_start(instance.into(), orchestration.into(), Some(version.into()), input).await
    }

    /// Starts the instance with its first turn if a runtime of this process can run the turn now; else enqueues the start.
    async fn enqueue_start(
        &self,
        instance: String,
        orchestration: String,
        version: Option<String>,
        input: String,
    ) -> Result<(), ClientError> {
        let start = self.start_item(instance, orchestration, version, input)?;
        if !eager::start(&self.store, self.store_id, &start).await? {
            self.store.enqueue_for_orchestrator(start, None).await?;
        }
        Ok(())
    }

    /// Checks the arguments and builds the start message of a root instance.
    pub(super) fn start_item(
        &self,
        instance: String,
        orchestration: String,
        version: Option<String>,
        input: String,
    ) -> Result<WorkItem, ClientError> {
        self.check_new_id(&instance)?;
        self.check_name("orchestration name", &orchestration, &instance)?;
        self.check_name("version", version.as_deref().unwrap_or_default(), &instance)?;
        self.check_payload("input", &input, &instance)?;
        Ok(WorkItem::StartOrchestration {
            instance,
            orchestration,
            input,
            version,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: INITIAL_EXECUTION_ID,
        })
    }
}
