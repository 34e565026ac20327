//! The audit: a record of the changes that operators and runtimes make to instances from outside.

/// A change to record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditEntry {
    /// The person, program or build that made the change.
    pub actor: String,
    /// The change, for example `instance.pause`.
    pub action: String,
    /// The target of the change, usually an instance id.
    pub target: String,
    /// The reason that the actor gave.
    pub reason: String,
    /// The id of the request that caused the change, if it has one.
    pub request: Option<String>,
    /// The outcome, for example `done` or `refused`.
    pub result: String,
}

/// A recorded change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    /// The position in the audit. Later records have higher ids.
    pub id: u64,
    /// The store's time of the record.
    pub at_ms: u64,
    /// The change.
    pub entry: AuditEntry,
}
