//! Outlast's store for Azure Cosmos DB.
//!
//! One container holds all documents, and the documents of an instance share a partition. A turn commits in one transactional
//! batch whose first operation replaces the document of the instance under `If-Match`: that condition is the fence. A turn that
//! does not fit into a batch is staged: its documents are created invisible, and one batch makes them visible.
//!
//! | module | holds |
//! |---|---|
//! | `provider`, `admin` | the contract |
//! | `fetch`, `load`, `lease`, `message`, `orphans`, `park`, `seats` | fetches of turns |
//! | `hold`, `aside` | holds of instances, and their messages |
//! | `ready`, `ready_activity`, `hints`, `offers`, `repair`, `heartbeat` | how ready work is found |
//! | `commit`, `prepare`, `record`, `recover`, `ahead`, `tail` | commits of turns |
//! | `activity`, `fetch_activity`, `session`, `outbox`, `reconcile` | activities, their sessions, and messages between instances |
//! | `history`, `kv`, `start`, `list`, `pending`, `gauges`, `rolling`, `tally`, `delete`, `prune` | the other operations |
//! | `instance` | fenced writes of the document of an instance |
//! | `client`, `account`, `open`, `probe`, `tls`, `error`, `sql` | the container: how it is opened, and requests to it |
//!
//! Decisions that need no connection, checked by the models in `model`:
//!
//! | module | decides |
//! |---|---|
//! | `ids`, `layout` | ids of documents, and their partitions |
//! | `visible` | which documents of a partition a reader ignores |
//! | `staging` | the batches of a turn |
//! | `doubt` | whether a write was applied whose answer is an error |
//! | `slots`, `fleet`, `leases` | which runtime serves which dispatch slot |
//! | `limit` | how long a request may take |
//! | `pace` | how often hints are read |
//! | `clock` | the time of the service |

#![forbid(unsafe_code)]

mod account;
mod activity;
mod admin;
mod ahead;
mod aside;
mod audit;
mod client;
mod clock;
mod commit;
mod dead_letter;
mod delete;
mod document;
mod doubt;
#[cfg(feature = "test-hooks")]
mod dump;
mod error;
mod fetch;
mod fetch_activity;
mod fleet;
mod gauges;
mod heartbeat;
mod hints;
mod history;
mod hold;
#[cfg(feature = "test-hooks")]
mod hooks;
mod ids;
mod injector;
mod instance;
mod kv;
mod layout;
mod lease;
pub mod leases;
mod limit;
mod list;
mod load;
mod message;
#[cfg(test)]
mod model;
mod node;
mod number;
mod offers;
mod once;
mod open;
mod options;
mod orphans;
pub mod outbox;
mod pace;
mod park;
mod paused;
mod pending;
mod prepare;
mod probe;
pub mod provider;
mod prune;
mod purge;
mod ready;
mod ready_activity;
mod recent;
mod reconcile;
mod record;
mod recover;
mod repair;
mod reset;
mod retention;
mod rolling;
mod seats;
mod session;
mod slots;
mod sql;
mod staging;
mod start;
mod store;
mod tail;
mod tally;
mod tasks;
mod time;
mod tls;
mod transfer;
mod visible;

#[cfg(feature = "test-hooks")]
pub use dump::Texts;
pub use error::CosmosStoreError;
pub use injector::OutboxFaultInjector;
pub use options::{CosmosDBOptions, CosmosDBProviderConfig};
pub use provider::CosmosDBProvider;
