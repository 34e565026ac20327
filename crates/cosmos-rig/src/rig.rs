//! A rig, as tests use it.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use azure_core::http::Url;
use azure_data_cosmos_driver::in_memory_emulator::{EmulatorStore, ManualControlPlaneOperation};

use crate::account::Account;
use crate::auth;
use crate::front::Front;
use crate::server::Server;
use crate::tls;
use crate::{Fault, FaultHandle, Record, RigOptions, Totals};

/// An emulated account on loopback ports. It ends when it is dropped.
pub struct Rig {
    front: Arc<Front>,
    endpoints: Vec<String>,
    server: Server,
}

impl Rig {
    /// Starts a rig with the default settings.
    pub async fn start() -> io::Result<Self> {
        Self::start_with(RigOptions::default()).await
    }

    /// Starts a rig.
    pub async fn start_with(options: RigOptions) -> io::Result<Self> {
        let mut listeners = Vec::new();
        let mut urls = Vec::new();
        for _ in &options.regions {
            let listener = TcpListener::bind(("127.0.0.1", 0))?;
            listener.set_nonblocking(true)?;
            let scheme = if options.tls { "https" } else { "http" };
            let url = format!("{scheme}://{}/", listener.local_addr()?);
            urls.push(Url::parse(&url).map_err(io::Error::other)?);
            listeners.push(listener);
        }
        let endpoints = urls.iter().map(Url::to_string).collect();
        let tls = options.tls.then(tls::acceptor).transpose()?;
        let account = Account::new(&options, urls).map_err(io::Error::other)?;
        let front = Arc::new(Front::new(options, account));
        let server = Server::start(front.clone(), listeners, tls)?;
        Ok(Self { front, endpoints, server })
    }

    /// The address of the account: that of its write region.
    pub fn endpoint(&self) -> &str {
        &self.endpoints[0]
    }

    /// The addresses of the regions.
    pub fn endpoints(&self) -> &[String] {
        &self.endpoints
    }

    /// The key of the account.
    pub fn key(&self) -> &'static str {
        auth::KEY
    }

    /// A key that only reads.
    pub fn read_only_key(&self) -> &'static str {
        auth::READ_ONLY_KEY
    }

    /// The address that issues Entra tokens for [`TENANT`](crate::TENANT), [`CLIENT_ID`](crate::CLIENT_ID) and
    /// [`CLIENT_SECRET`](crate::CLIENT_SECRET), by the client credentials flow.
    pub fn token_endpoint(&self) -> String {
        format!("{}{}/oauth2/v2.0/token", self.endpoint(), auth::TENANT)
    }

    /// Refuses the tokens that were issued so far.
    pub fn revoke_tokens(&self) {
        self.front.auth.revoke_tokens();
    }

    /// The number of tokens that were issued.
    pub fn tokens_issued(&self) -> u64 {
        self.front.auth.tokens_issued()
    }

    /// Adds a fault.
    pub fn fault(&self, fault: Fault) -> FaultHandle {
        self.front.faults.add(fault)
    }

    /// Removes all faults and lets held requests go on.
    pub fn clear_faults(&self) {
        self.front.faults.clear();
    }

    /// Limits the documents in a page of a query or feed, also where the client asks for more. Azure may do so.
    pub fn limit_pages(&self, documents: Option<u32>) {
        self.front.page_limit.store(documents.unwrap_or(0), Ordering::Relaxed);
    }

    /// The time of the account, in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> u64 {
        self.front.account.clock.now_ms()
    }

    /// Stops the account's clock. `_ts` of later writes is this time, in whole seconds.
    pub fn stop_clock_at(&self, now_ms: u64) {
        self.front.account.clock.stop_at(now_ms);
    }

    /// Moves the account's clock forward. Documents whose time to live ends meanwhile are gone.
    pub fn advance_clock(&self, by: Duration) {
        self.front.account.clock.advance(by);
    }

    /// Lets the account's clock run, with a difference to the machine's clock; 0 is the machine's clock.
    pub fn shift_clock(&self, by_ms: i64) {
        self.front.account.clock.shift(by_ms);
    }

    /// All requests so far, in the order of their execution.
    pub fn recorded(&self) -> Vec<Record> {
        self.front.recorder.records()
    }

    /// Sums over all requests so far.
    pub fn totals(&self) -> Totals {
        self.front.recorder.totals()
    }

    /// Returns all requests so far, and forgets them and their sums.
    pub fn take_recorded(&self) -> Vec<Record> {
        self.front.recorder.take().1
    }

    /// The store of the emulator, for its own test hooks: regions that go offline, paused replication, failover,
    /// sessions that are not available. Hooks that start tasks must run on [`Rig::runtime`].
    pub fn store(&self) -> Arc<EmulatorStore> {
        self.front.account.store()
    }

    /// The runtime of the emulator.
    pub fn runtime(&self) -> &tokio::runtime::Handle {
        &self.server.runtime
    }

    /// Splits a physical partition into two, and returns them.
    pub async fn split(&self, database: &str, container: &str, partition: u32) -> Result<Vec<u32>, String> {
        let store = self.store();
        let (database, container) = (database.to_string(), container.to_string());
        let split = async move {
            let at = store
                .midpoint_split_epk(&database, &container, partition)
                .map_err(|error| error.to_string())?;
            let split = store.split_partition_and_wait(&database, &container, partition, at, Duration::ZERO);
            split.await.map_err(|error| error.to_string())
        };
        self.server.runtime.spawn(split).await.map_err(|error| error.to_string())?
    }

    /// Begins to split a physical partition: until the caller completes or cancels the operation, the emulator refuses
    /// requests to the partition with 410/1007.
    pub fn begin_split(
        &self,
        database: &str,
        container: &str,
        partition: u32,
    ) -> Result<ManualControlPlaneOperation, String> {
        let _inside = self.server.runtime.enter();
        let store = self.store();
        let at =
            store.midpoint_split_epk(database, container, partition).map_err(|error| error.to_string())?;
        let begun = store.begin_manual_split_partition(database, container, partition, at);
        begun.map_err(|error| error.to_string())
    }
}
