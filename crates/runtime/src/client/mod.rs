//! Starting, signalling, observing and managing instances, from any process that can reach the store.

mod check;
mod error;
mod kv;
mod manage;
mod send;
mod start;
mod start_builder;
mod wait;

pub use error::ClientError;
pub use start_builder::{AlreadyExists, Conflict, StartBuilder, StartReceipt};

use crate::instrumented::InstrumentedProvider;
use crate::uncounted::StoreId;
use outlast_model::codec::Codec;
use outlast_model::limits::Limits;
use outlast_provider::Provider;
use std::fmt;
use std::sync::Arc;

/// The way to instances from outside: starts them, sends them events, waits for them.
///
/// A client talks to runtimes through the store alone, so it works in any process that can open the store, whether or
/// not a runtime runs there. Cloning it is cheap.
///
/// Every method is cancellation safe. One that only reads or waits can be dropped at any time. One that stores
/// something has, when its future is dropped, stored everything or nothing.
#[derive(Clone)]
pub struct Client {
    store: Arc<dyn Provider>,
    /// Which object the store is, to find the runtimes that share it.
    store_id: StoreId,
    limits: Arc<Limits>,
    codec: Codec,
}

impl Client {
    /// A client of this store.
    pub fn new(store: Arc<dyn Provider>) -> Self {
        let store_id = StoreId::of(&store);
        let store = InstrumentedProvider::around(store);
        Self { store, store_id, limits: Arc::default(), codec: Codec::default() }
    }

    /// The same client with other limits for what it sends: [`Limits::payload_bytes`] and [`Limits::name_bytes`]. The
    /// runtimes that receive it have limits of their own.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits: Arc::new(limits), ..self }
    }

    pub(crate) fn with_shared_limits(self, limits: Arc<Limits>) -> Self {
        Self { limits, ..self }
    }

    /// The same client with another form for typed values, which the runtimes must use too (`RuntimeOptions::codec`).
    #[must_use]
    pub fn with_codec(self, codec: Codec) -> Self {
        Self { codec, ..self }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("store", &self.store.name()).finish_non_exhaustive()
    }
}
