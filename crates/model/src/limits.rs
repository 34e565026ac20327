//! Limits that the contract fixes. A value exactly at a limit passes.

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
/// Tags that one worker can subscribe to.
pub const MAX_WORKER_TAGS: usize = 5;
/// Length of an instance id that a caller chooses.
pub const MAX_INSTANCE_ID_BYTES: usize = 512;
/// Length of an instance id that the runtime generates for a child, which nests its ancestors' ids.
pub const MAX_GENERATED_INSTANCE_ID_BYTES: usize = 4_096;
