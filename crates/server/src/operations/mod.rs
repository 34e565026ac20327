//! Changes of many instances, which run in the server beside its requests. Operations are in memory: a restart ends them. The change of
//! each instance is durable, and the audit has a record of it.

mod pace;
mod run;

use crate::access::{Caller, Scope};
use crate::problem::{Code, Problem};
use crate::view::rfc3339;
use outlast::Client;
use outlast::client::{BulkChange, BulkVerb};
use outlast::providers::{Clock, Entropy, OsEntropy, SystemClock};
use pace::Pace;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use utoipa::ToSchema;

/// The most operations that are kept; the oldest that has ended is forgotten first.
const MOST_KEPT: usize = 100;
/// The most operations that run at a time. They share the rate.
const MOST_RUNNING: usize = 4;

/// The operations of this server.
pub(crate) struct Operations {
    pace: Arc<Pace>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Newest last.
    kept: VecDeque<Arc<Operation>>,
    /// Dropped with the server, which ends the operations.
    tasks: JoinSet<()>,
}

/// One operation.
pub(crate) struct Operation {
    id: String,
    change: BulkChange,
    matching: u64,
    started_ms: u64,
    tally: Tally,
    is_stopped: AtomicBool,
    stop: Notify,
    /// The end: its time, and the error that ended the operation early.
    ended: OnceLock<(u64, Option<String>)>,
}

/// The instances so far.
#[derive(Default)]
struct Tally {
    changed: AtomicU64,
    unchanged: AtomicU64,
    refused: AtomicU64,
}

/// A change of many instances.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OperationView {
    pub(crate) id: String,
    /// `cancel`, `terminate`, `pause`, `resume` or `delete`.
    pub(crate) action: &'static str,
    /// `running`, `done`, `stopped`, or `failed` if the store did not answer.
    pub(crate) state: &'static str,
    pub(crate) actor: String,
    pub(crate) reason: String,
    /// The instances that matched.
    pub(crate) matching: u64,
    /// The instances that were changed.
    pub(crate) changed: u64,
    /// The instances that had ended, were held or released, or were gone before.
    pub(crate) unchanged: u64,
    /// The instances that refused the change, such as the pause of an instance that is being cancelled.
    pub(crate) refused: u64,
    /// The error that ended the operation.
    pub(crate) error: Option<String>,
    pub(crate) started_at: String,
    pub(crate) started_at_ms: u64,
    pub(crate) ended_at_ms: Option<u64>,
}

impl Operation {
    pub(crate) fn view(&self) -> OperationView {
        let count = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let ended = self.ended.get();
        let error = ended.and_then(|(_, error)| error.clone());
        OperationView {
            id: self.id.clone(),
            action: self.change.verb.as_str(),
            state: match ended {
                None => "running",
                Some(_) if error.is_some() => "failed",
                Some(_) if self.is_stopped.load(Ordering::Relaxed) => "stopped",
                Some(_) => "done",
            },
            actor: self.change.actor.clone(),
            reason: self.change.reason.clone(),
            matching: self.matching,
            changed: count(&self.tally.changed),
            unchanged: count(&self.tally.unchanged),
            refused: count(&self.tally.refused),
            error,
            started_at: rfc3339(self.started_ms),
            started_at_ms: self.started_ms,
            ended_at_ms: ended.map(|(at_ms, _)| *at_ms),
        }
    }

    /// Ends the operation after the instances that are being changed. Returns false if it has ended before.
    pub(crate) fn stop(&self) -> bool {
        if self.ended.get().is_some() {
            return false;
        }
        self.is_stopped.store(true, Ordering::Relaxed);
        self.stop.notify_one();
        true
    }
}

impl Operations {
    pub(crate) fn new(rate: u32) -> Self {
        Self { pace: Arc::new(Pace::new(rate)), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic between two statements of this file leaves a whole state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All operations, newest first.
    pub(crate) fn list(&self) -> Vec<OperationView> {
        self.state().kept.iter().rev().map(|operation| operation.view()).collect()
    }

    pub(crate) fn find(&self, id: &str) -> Result<Arc<Operation>, Problem> {
        let found = self.state().kept.iter().find(|operation| operation.id == id).cloned();
        found.ok_or_else(|| {
            Problem::new(
                Code::NOT_FOUND,
                "there is no such operation: the server keeps the newest ones, and forgets them when it stops",
            )
        })
    }

    /// Starts the change of these instances.
    pub(crate) fn start(
        &self,
        client: &Client,
        change: BulkChange,
        instances: Vec<String>,
    ) -> Result<Arc<Operation>, Problem> {
        let mut state = self.state();
        while state.tasks.try_join_next().is_some() {}
        if state.tasks.len() >= MOST_RUNNING {
            return Err(Problem::later(
                Code::OPERATIONS,
                format!("{MOST_RUNNING} operations run: wait until one has ended, or stop one"),
                1,
            ));
        }
        if state.kept.len() >= MOST_KEPT
            && let Some(oldest) = state.kept.iter().position(|operation| operation.ended.get().is_some())
        {
            state.kept.remove(oldest);
        }
        let operation = Arc::new(Operation {
            id: format!("{:032x}", OsEntropy.next_u128()),
            change,
            matching: instances.len() as u64,
            started_ms: SystemClock.now_ms(),
            tally: Tally::default(),
            is_stopped: AtomicBool::new(false),
            stop: Notify::new(),
            ended: OnceLock::new(),
        });
        state.kept.push_back(operation.clone());
        state.tasks.spawn(run::run(client.clone(), operation.clone(), instances, self.pace.clone()));
        Ok(operation)
    }
}

/// The scope of a verb: deletions need `admin`, as they do for one instance.
fn scope_of(verb: BulkVerb) -> Scope {
    match verb {
        BulkVerb::Delete => Scope::Admin,
        _ => Scope::Operate,
    }
}

/// An error for a caller without the scope of the verb.
pub(crate) fn check_scope(caller: &Caller, verb: BulkVerb) -> Result<(), Problem> {
    let scope = scope_of(verb);
    match caller.scopes.allow(scope) {
        true => Ok(()),
        false => Err(Problem::new(
            Code::SCOPE,
            format!("the action {} needs a token with the scope {scope}", verb.as_str()),
        )),
    }
}
