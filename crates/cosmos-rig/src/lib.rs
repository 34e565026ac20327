//! A test rig for the Cosmos DB store: Microsoft's in-memory emulator on a loopback port.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use outlast_cosmos_rig::{Fault, Kind, Rig};
//!
//! let rig = Rig::start().await?;
//! let lost = rig.fault(Fault::on(Kind::Batch).nth(2).after().drop_connection());
//! // ... run the store against rig.endpoint() with rig.key() ...
//! assert_eq!(lost.struck(), 1);
//! println!("{:?}", rig.totals().operations);
//! # Ok(())
//! # }
//! ```
#![doc = include_str!("../README.md")]

mod account;
mod auth;
mod call;
mod charge;
mod clock;
mod control;
mod copies;
mod expiry;
mod fault;
mod front;
mod indexing;
mod kind;
mod options;
mod recorder;
mod reply;
mod rig;
mod server;
mod sql;
mod strict;
mod target;
mod tls;

pub use auth::{CLIENT_ID, CLIENT_SECRET, KEY, READ_ONLY_KEY, TENANT};
pub use azure_data_cosmos_driver::in_memory_emulator as emulator;
pub use charge::ChargeModel;
pub use fault::{Fault, FaultHandle};
pub use kind::Kind;
pub use options::RigOptions;
pub use recorder::{Record, RecordedOperation, Totals};
pub use rig::Rig;
pub use target::{Ends, Target, target};
pub use tls::AUTHORITY;
