//! A model in place of the server, for simulated worlds (feature `test-hooks`). The shipped tasks of a store run against it: scheduler,
//! lanes, replies, requests that are sent again, listener. No byte leaves the process, and time is tokio's.
//!
//! | part | shipped | modelled |
//! |---|---|---|
//! | which requests and fetches share a transaction, parked fetches, hand-offs | `scheduler.rs` | |
//! | lanes, replies, leases for fetches, failed transactions, leases in doubt | `lanes.rs`, `serve.rs`, `failed.rs`, `resend.rs`, `in_doubt.rs` | |
//! | parameters, statements, rows and connections | | [`execute`]: each request is a call of the modelled store, all in one moment |
//! | the loop of the listener, registrations, put-off and forwarded notifications | `listener.rs`, `notify.rs` | |
//! | `NOTIFY` and the table of listeners | | [`wire`]: delayed, in their order, lost with their connection |
//! | the detection of dead processes | | leases end by time; the registration of an ended process is removed at once |
//! | reads and management | | calls of the modelled store, without a delay |

mod execute;
mod row;
mod store;
mod wire;

pub(crate) use row::ModelledRow;
pub use store::ModelledStore;
pub(crate) use wire::{ModelledLine, ModelledNotifications};

use crate::PostgresError;
use crate::db::Result;
use crate::lanes::PollSecrets;
use crate::notify::Wants;
use crate::request::{Commit, Committed, Lease};
use crate::transaction::{Done, Transaction};
use futures::FutureExt;
use outlast_model::json;
use outlast_provider::Provider;
use outlast_provider_kit::TurnAtFetch;
use outlast_provider_kit::token::Secret;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use wire::Wires;

/// The rows of the modelled server: a store that answers every call at once.
pub trait ServerRows: Send + Sync {
    /// The store.
    fn store(&self) -> &dyn Provider;

    /// The time of the server.
    fn now_ms(&self) -> u64;

    /// The time at which the next message, activity or session that cannot be fetched yet becomes available.
    fn next_due_ms(&self) -> Option<u64>;

    /// Whether a visible message waits for the instance.
    fn has_due_messages(&self, instance: &str) -> bool;
}

/// A fault of a connection to the modelled server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkFault {
    /// No connection can be opened.
    Unreachable,
    /// The transaction conflicts with another one, and is undone.
    Conflict,
    /// The connection is lost before the server commits.
    LostBefore,
    /// The connection is lost after the server has committed.
    LostAfter,
}

/// The delays and faults of the connections of a world.
pub trait LinkFaults: Send + Sync {
    /// The time until the server receives a transaction, or a process a notification.
    fn delay(&self) -> Duration;

    /// The fault of the next transaction.
    fn of_transaction(&self) -> Option<LinkFault>;

    /// Whether the connection of a listener is lost in place of the next notification.
    fn loses_listener(&self) -> bool;

    /// A number below `count`.
    fn choose(&self, count: usize) -> usize;
}

/// The server of a world, which all its processes share.
pub struct ModelledServer {
    rows: Arc<dyn ServerRows>,
    faults: Arc<dyn LinkFaults>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The leases that were ever taken, by the secrets of their processes.
    leases: HashMap<Secret, Held>,
    /// The leases of activities whose outcome was queued.
    queued: HashSet<Secret>,
    /// The last id of an activity.
    last_id: i64,
    wires: Wires,
}

/// A lease of the modelled store.
#[derive(Debug, Clone)]
struct Held {
    /// The token of the modelled store.
    token: String,
    instance: String,
    /// Of an activity: the id of its row, its execution, and the id of its event.
    activity: Option<(i64, u64, u64)>,
}

impl ModelledServer {
    /// A server with these rows.
    pub fn new(rows: Arc<dyn ServerRows>, faults: Arc<dyn LinkFaults>) -> Arc<Self> {
        Arc::new(Self { rows, faults, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self) -> &dyn Provider {
        self.rows.store()
    }
}

/// The answer of the modelled store to a call.
#[allow(clippy::expect_used, reason = "a store of `ServerRows` answers every call at once")]
fn at_once<T>(call: impl Future<Output = T>) -> T {
    call.now_or_never().expect("the modelled store answers at once")
}

/// The connections of one process to the modelled server.
pub(crate) struct Link {
    server: Arc<ModelledServer>,
    /// The id of the store object, which is known after it is made.
    id: OnceLock<String>,
    /// The process has ended. Nothing that it sends from now on arrives.
    is_cut: AtomicBool,
}

impl Link {
    fn new(server: &Arc<ModelledServer>) -> Self {
        Self { server: Arc::clone(server), id: OnceLock::new(), is_cut: AtomicBool::new(false) }
    }

    fn id(&self) -> &str {
        self.id.get().map_or("", String::as_str)
    }

    fn cut(&self) {
        self.is_cut.store(true, Ordering::Release);
    }

    /// Waits until what the process has sent arrives: for ever, if the process has ended.
    async fn arrives(&self) {
        let delay = self.server.faults.delay();
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if self.is_cut.load(Ordering::Acquire) {
            std::future::pending::<()>().await;
        }
    }

    /// Sends a transaction and waits for its answers. Sets `in_doubt` to false if an error means that nothing is stored.
    ///
    /// The answer to requests under leases, and to a fetch that gets a lease, arrives at the moment of the commit: the invariants of a
    /// world compare the leases of processes in the order of the commits. Other answers take their time, in which commits of this and
    /// other processes come.
    pub(crate) async fn exchange(
        &self,
        transaction: &Transaction,
        secrets: &PollSecrets,
        notifies: Wants,
        in_doubt: &mut bool,
    ) -> Result<Done> {
        let fault = self.server.faults.of_transaction();
        self.arrives().await;
        let lost = |details: &str| PostgresError::Disconnected { details: details.to_string() };
        *in_doubt = matches!(fault, None | Some(LinkFault::LostBefore | LinkFault::LostAfter));
        match fault {
            Some(LinkFault::Unreachable) => Err(lost("modelled: unreachable")),
            Some(LinkFault::Conflict) => {
                Err(PostgresError::Conflict { code: "40001".to_string(), details: "modelled".to_string() })
            }
            Some(LinkFault::LostBefore) => Err(lost("modelled: lost before the commit")),
            Some(LinkFault::LostAfter) => {
                self.server.execute(self.id(), transaction, secrets, notifies);
                Err(lost("modelled: lost after the commit"))
            }
            None => {
                let done = self.server.execute(self.id(), transaction, secrets, notifies);
                if !execute::is_about_leases(transaction, &done) {
                    self.arrives().await;
                }
                Ok(done)
            }
        }
    }

    /// The leases that a lost transaction has taken.
    pub(crate) async fn leases_in_doubt(&self, secrets: &[Vec<u8>]) -> Result<Vec<Lease>> {
        self.arrives().await;
        let state = self.server.state();
        let lease = |secret: &Vec<u8>| {
            let secret: Secret = secret.as_slice().try_into().ok()?;
            let held = state.leases.get(&secret)?;
            Some(match held.activity {
                Some((id, ..)) => Lease::Activity { secret, id },
                None => {
                    let (current_execution, messages, is_partial) = (0, 0, false);
                    let instance = held.instance.clone();
                    let at_fetch = TurnAtFetch { current_execution, messages, is_partial, instance };
                    Lease::Turn { secret, at_fetch }
                }
            })
        };
        Ok(secrets.iter().filter_map(lease).collect())
    }

    /// The result of an earlier attempt at a commit, if that attempt was stored.
    pub(crate) async fn stored_commit(&self, commit: &Commit) -> Result<Option<Committed>> {
        self.arrives().await;
        if let Some(plan) = &commit.plan {
            let instance = crate::batch::instance_of(commit);
            let events = at_once(self.server.store().read_with_execution(instance, plan.execution_id));
            let stored: BTreeMap<u64, String> = events
                .unwrap_or_default()
                .iter()
                .filter_map(|event| Some((event.event_id, json::encode_event(event).ok()?)))
                .collect();
            let is_stored = |row: &outlast_provider_kit::plan::HistoryRow| {
                stored.get(&row.event_id).is_some_and(|text| *text == row.event_data)
            };
            if !plan.history.is_empty() && plan.history.iter().all(is_stored) {
                return Ok(Some(Committed::WithTurn { at_ms: self.server.rows.now_ms() }));
            }
        }
        let secret = commit.fence.lease().map(|lease| *lease.secret());
        let is_queued = secret.is_some_and(|secret| self.server.state().queued.contains(&secret));
        Ok(is_queued.then_some(Committed::Queued))
    }
}
