//! Answers to exports and imports of instances.

use outlast_model::InstanceSnapshot;

/// The answer to [`ProviderAdmin::export_instance`](crate::ProviderAdmin::export_instance).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportOutcome {
    /// The instance at one moment.
    Exported(Box<InstanceSnapshot>),
    /// There is no such instance, and no message waits for it.
    NotFound,
    /// The instance changed during each of several reads.
    Changed,
    /// The store cannot export instances.
    Unsupported,
}

/// The answer to [`ProviderAdmin::import_instance`](crate::ProviderAdmin::import_instance).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportOutcome {
    /// The instance is stored.
    Imported,
    /// The id is taken: an instance has it, or a start waits for it. Nothing is changed.
    Taken,
    /// The store cannot import instances.
    Unsupported,
}
