//! Outlast's store for Azure Cosmos DB.
//!
//! One container holds all documents, and the documents of an instance share a partition. A turn commits in one transactional
//! batch whose first operation replaces the document of the instance under `If-Match`: that condition is the fence. A turn that
//! does not fit into a batch is staged: its documents are created invisible, and one batch makes them visible.
//!
//! This crate holds the decisions of the store that need no connection, and the models of its protocols:
//!
//! | module | decides |
//! |---|---|
//! | `ids`, `layout` | ids of documents, and their partitions |
//! | `visible` | which documents of a partition a reader ignores |
//! | `staging` | the batches of a turn |
//! | `doubt` | whether a write was applied whose answer is an error |
//! | `slots` | which runtime serves which slot |
//! | `clock` | the time of the service |

#![forbid(unsafe_code)]
#![cfg_attr(not(test), expect(dead_code, reason = "no provider calls these decisions yet"))]

mod clock;
mod doubt;
mod ids;
mod layout;
#[cfg(test)]
mod model;
mod slots;
mod staging;
mod visible;
