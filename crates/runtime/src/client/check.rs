//! Checks of ids, names and payloads before a client sends them. Stores reject invalid ids too; these checks return
//! [`ClientError::InvalidInput`] instead of an error of the store.

use super::{Client, ClientError};
use outlast_model::{SUB_ORCH_AUTO_PREFIX, check_instance_id};

impl Client {
    /// Encodes a typed value as payload text.
    pub(super) fn encoded<T: serde::Serialize + ?Sized>(&self, value: &T) -> Result<String, ClientError> {
        self.codec.encode(value).map_err(|error| ClientError::invalid(format!("encode: {error}")))
    }

    /// Checks an instance id that a message is sent to.
    pub(super) fn check_target(&self, instance: &str) -> Result<(), ClientError> {
        check_instance_id(instance).map_err(|error| ClientError::invalid(error.to_string()))
    }

    /// Checks an instance id under which a root is started.
    pub(super) fn check_new_id(&self, instance: &str) -> Result<(), ClientError> {
        if instance.starts_with(SUB_ORCH_AUTO_PREFIX) || instance.contains("::sub::") {
            let shown: String = instance.chars().take(SHOWN).collect();
            return Err(ClientError::invalid(format!(
                "instance id '{shown}' uses the reserved sub-orchestration marker 'sub::'"
            )));
        }
        self.check_target(instance)
    }

    /// Checks the length of a name: of an orchestration, a version, an event or a queue.
    pub(super) fn check_name(&self, what: &str, name: &str, instance: &str) -> Result<(), ClientError> {
        let (bytes, limit) = (name.len(), self.limits.name_bytes);
        match bytes <= limit {
            true => Ok(()),
            false => Err(ClientError::invalid(format!(
                "the {what} for instance '{instance:.60}' has {bytes} bytes, the limit name_bytes is {limit}: use a \
                 shorter one, or raise Limits::name_bytes in the client and its runtimes"
            ))),
        }
    }

    /// Checks the size of a payload: an input, the data of an event, or a cancellation reason.
    pub(super) fn check_payload(&self, what: &str, payload: &str, instance: &str) -> Result<(), ClientError> {
        let (bytes, limit) = (payload.len(), self.limits.payload_bytes);
        match bytes <= limit {
            true => Ok(()),
            false => Err(ClientError::invalid(format!(
                "the {what} for instance '{instance:.60}' has {bytes} bytes, the limit payload_bytes is {limit}: pass a \
                 reference to the data, or raise Limits::payload_bytes in the client and its runtimes"
            ))),
        }
    }
}

/// The characters of a rejected id that the error shows: all of them if its length is valid.
const SHOWN: usize = outlast_model::limits::MAX_INSTANCE_ID_BYTES;
