//! Starting, signalling, observing and managing instances, from any process that can reach the store.

mod bulk;
mod check;
mod dead_letter;
mod error;
mod hold;
mod kv;
mod manage;
mod node;
mod once;
mod pause;
mod reset;
mod retention;
mod send;
mod start;
mod start_builder;
mod wait;
mod why;

pub use bulk::{BulkChange, BulkVerb};
pub use error::ClientError;
pub use node::{ListedNode, LostLeases};
pub use outlast_engine::reset::ResetSummary;
pub use reset::Reset;
pub use start_builder::{AlreadyExists, Conflict, StartBuilder, StartReceipt};

use crate::instrumented::InstrumentedProvider;
use crate::uncounted::StoreId;
use outlast_model::codec::Codec;
use outlast_model::limits::Limits;
use outlast_provider::Provider;
use std::fmt;
use std::sync::Arc;

/// Starts instances, sends them events, reads their state and waits for them.
///
/// A client communicates with runtimes only through the store. It works in any process that can open the store, with or without a
/// runtime in it. Cloning a client is cheap.
///
/// Every method is cancellation safe. A method that only reads or waits can be dropped at any time. A method that writes has, when
/// its future is dropped, stored all of its data or nothing.
#[derive(Clone)]
pub struct Client {
    store: Arc<dyn Provider>,
    /// Identifies the store object, to find the runtimes that share it.
    store_id: StoreId,
    limits: Arc<Limits>,
    codec: Codec,
    /// The request that this client acts for, for the audit.
    request: Option<Arc<str>>,
}

impl Client {
    /// A client of this store.
    pub fn new(store: Arc<dyn Provider>) -> Self {
        let store_id = StoreId::of(&store);
        let store = InstrumentedProvider::around(store);
        Self { store, store_id, limits: Arc::default(), codec: Codec::default(), request: None }
    }

    /// The same client with other limits for its requests: [`Limits::payload_bytes`], [`Limits::name_bytes`] and
    /// [`Limits::mailbox_messages`]. Runtimes have separate limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits: Arc::new(limits), ..self }
    }

    pub(crate) fn with_shared_limits(self, limits: Arc<Limits>) -> Self {
        Self { limits, ..self }
    }

    /// The same client with another codec for typed values. The runtimes must use the same codec (`RuntimeOptions::codec`).
    #[must_use]
    pub fn with_codec(self, codec: Codec) -> Self {
        Self { codec, ..self }
    }

    /// The same client with the id of the request that it acts for, such as the id of an HTTP request. The audit keeps the id with the
    /// records that the client writes itself: of a pause, a resumption, a reset, a fork, a change of a dead letter, and of
    /// [`Client::bulk_apply`] for a change without an id of its own.
    #[must_use]
    pub fn with_request(self, id: impl Into<Arc<str>>) -> Self {
        Self { request: Some(id.into()), ..self }
    }

    /// The id of a request for the audit: the given one, or that of this client.
    fn request_id(&self, given: Option<&str>) -> Option<String> {
        given.or(self.request.as_deref()).map(str::to_string)
    }

    /// The codec for typed values.
    pub fn codec(&self) -> Codec {
        self.codec
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("store", &self.store.name()).finish_non_exhaustive()
    }
}
