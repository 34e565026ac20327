//! Limits: constants of the contract, and limits that an operator can set. A value exactly at a limit passes.

/// Unread queue messages carried over by one continue-as-new.
pub const MAX_CARRY_FORWARD_EVENTS: usize = 100;
/// Size of a custom status string.
pub const MAX_CUSTOM_STATUS_BYTES: usize = 262_144;
/// Size of an activity's tag.
pub const MAX_TAG_NAME_BYTES: usize = 256;
/// Size of one value in an instance's key-value store.
pub const MAX_KV_VALUE_BYTES: usize = 65_536;
/// Keys in an instance's key-value store.
pub const MAX_KV_KEYS: usize = 150;
/// Size of the key of a message that is stored at most once.
pub const MAX_MESSAGE_KEY_BYTES: usize = 1_024;
/// Tags that one worker can subscribe to.
pub const MAX_WORKER_TAGS: usize = 5;
/// Length of the id of a node, which owns sessions.
pub const MAX_NODE_ID_BYTES: usize = 256;
/// Size of the stored report of a node.
pub const MAX_NODE_REPORT_BYTES: usize = 65_536;
/// Orchestrations, and activities, in the report of a node.
pub const MAX_NODE_HANDLERS: usize = 256;
/// Leases in the report of a node.
pub const MAX_NODE_LEASES: usize = 64;
/// Patches that its code does not ask for, in the report of a node.
pub const MAX_NODE_PATCHES: usize = 64;
/// Length of an instance id that a caller chooses.
pub const MAX_INSTANCE_ID_BYTES: usize = 512;
/// Length of an instance id that the runtime generates for a child, which nests its ancestors' ids.
pub const MAX_GENERATED_INSTANCE_ID_BYTES: usize = 4_096;

/// Limits of one instance. An instance over a limit fails, or the client refuses it, with a message that names the limit.
///
/// The defaults are the contract's where the contract has a limit. A lowered limit fails running instances that are above it
/// at their next turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one payload: an input, an output, an activity's input or result, an event's data, an error text.
    pub payload_bytes: usize,
    /// Decisions (activities, timers, children, waits, ..) of the code after one message. They are counted per message, so that
    /// the split of messages into turns does not matter.
    pub decisions_per_turn: usize,
    /// Events in the history of one execution.
    pub history_events: usize,
    /// Events in the history of one execution at which a warning is logged.
    pub history_events_warning: usize,
    /// Bytes of the history of one execution.
    pub history_bytes: usize,
    /// Messages that may wait for one instance.
    pub mailbox_messages: usize,
    /// Bytes of a name: of an orchestration, an activity, an event or a queue, and of a key.
    pub name_bytes: usize,
    /// Bytes of a custom status.
    pub custom_status_bytes: usize,
    /// Bytes of an activity's tag.
    pub tag_bytes: usize,
    /// Bytes of one value in the key-value store.
    pub kv_value_bytes: usize,
    /// Keys in the key-value store.
    pub kv_keys: usize,
    /// Unread queue messages carried over by one continue-as-new.
    pub carry_forward_events: usize,
    /// Bytes of unread queue messages carried over by one continue-as-new. Messages above the limit are sent to the instance
    /// again, behind its waiting messages. At least one message is carried over.
    pub carry_forward_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            payload_bytes: 2 * MIB,
            decisions_per_turn: 10_000,
            history_events: 50_000,
            history_events_warning: 10_000,
            history_bytes: 50 * MIB,
            mailbox_messages: 10_000,
            name_bytes: 256,
            custom_status_bytes: MAX_CUSTOM_STATUS_BYTES,
            tag_bytes: MAX_TAG_NAME_BYTES,
            kv_value_bytes: MAX_KV_VALUE_BYTES,
            kv_keys: MAX_KV_KEYS,
            carry_forward_events: MAX_CARRY_FORWARD_EVENTS,
            carry_forward_bytes: 8 * MIB,
        }
    }
}

const MIB: usize = 1024 * 1024;
