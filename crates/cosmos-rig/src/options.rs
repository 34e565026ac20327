//! The settings of a rig.

use std::time::Duration;

use crate::ChargeModel;
use crate::emulator::ConsistencyLevel;

/// The settings of a rig. The default is an account with one region, Session consistency, checked keys and strict
/// refusals.
#[derive(Clone, Debug)]
pub struct RigOptions {
    /// The regions of the account. Each has a port of its own; the first is the write region.
    pub regions: Vec<String>,
    /// Whether every region accepts writes.
    pub multi_region_writes: bool,
    /// The default consistency of the account.
    pub consistency: ConsistencyLevel,
    /// Whether the emulator throttles containers that were created with a throughput, by its own charges.
    pub throttles: bool,
    /// Whether the rig refuses what Azure refuses with 400 and the emulator accepts.
    pub strict: bool,
    /// Whether batches respect the `If-Match` of their reads, as the emulator does. Azure was never tried.
    pub guards_reads: bool,
    /// Whether the rig checks keys and tokens.
    pub checks_keys: bool,
    /// How long a token of the token endpoint is valid.
    pub token_lifetime: Duration,
    /// Whether the ports speak TLS, with a certificate of the rig's own [`AUTHORITY`](crate::AUTHORITY).
    pub tls: bool,
    /// Whether the rig keeps a record of every request. Long runs switch it off and read the totals.
    pub keeps_records: bool,
    /// The model of Azure's prices.
    pub charges: ChargeModel,
}

impl Default for RigOptions {
    fn default() -> Self {
        Self {
            regions: vec!["East US".into()],
            multi_region_writes: false,
            consistency: ConsistencyLevel::Session,
            throttles: false,
            strict: true,
            guards_reads: true,
            checks_keys: true,
            token_lifetime: Duration::from_secs(3600),
            tls: false,
            keeps_records: true,
            charges: ChargeModel::default(),
        }
    }
}
