//! Counts the moments of a run, and injects one fault at one of them.

use super::run::LEASE_MS;
use crate::fault::Fault;
use outlast_sqlite::StatementFault;
use outlast_testing::poll_gate::PollGate;
use outlast_testing::probe::Probe;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// A moment and the fault that happens then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// The call with this index.
    Call(usize, Fault),
    /// The statement with this index.
    Statement(usize, StatementFault),
    /// The node with this index crashes in its first life after this number of polls.
    Poll(usize, u64),
}

/// The fault of one run of a sweep. Without a target it only counts moments.
pub(crate) struct SweepProbe {
    target: Option<Target>,
    /// Whether each call was made by a node. Clients do not crash.
    calls: Probe<bool, Fault>,
    /// Whether each statement was a commit.
    statements: Probe<bool, StatementFault>,
    progress: Mutex<Progress>,
    /// Notified when the target stalls a node.
    stalled: Notify,
}

/// The moments and endings so far.
#[derive(Default)]
struct Progress {
    /// The gates of first lives, by node.
    first_gates: BTreeMap<usize, Arc<PollGate>>,
    /// The gates of current lives, by node.
    current_gates: BTreeMap<usize, Arc<PollGate>>,
    stalled: Option<Arc<PollGate>>,
    /// How each instance ended that is visible to clients.
    endings: BTreeMap<String, String>,
}

/// The moments and endings of one run.
#[derive(Debug, Clone)]
pub(crate) struct Moments {
    /// Whether each call was made by a node.
    pub(crate) calls: Vec<bool>,
    /// Whether each statement was a commit.
    pub(crate) statements: Vec<bool>,
    /// Number of polls in the first life of each node.
    pub(crate) polls: Vec<u64>,
    pub(crate) endings: BTreeMap<String, String>,
}

impl SweepProbe {
    pub(crate) fn new(target: Option<Target>) -> Arc<Self> {
        let (call, statement) = match target {
            Some(Target::Call(at, fault)) => (Some((at, fault)), None),
            Some(Target::Statement(at, fault)) => (None, Some((at, fault))),
            Some(Target::Poll(..)) | None => (None, None),
        };
        Arc::new(Self {
            target,
            calls: Probe::new(call),
            statements: Probe::new(statement),
            progress: Mutex::default(),
            stalled: Notify::new(),
        })
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call; returns its fault if it is the target.
    pub(crate) fn on_call(&self, node: Option<usize>) -> Option<Fault> {
        let fault = self.calls.on_moment(node.is_some())?;
        if fault != Fault::Stalled {
            return Some(fault);
        }
        let mut progress = self.progress();
        // The call stalls, and so does every task of its node.
        let gate = node.and_then(|node| progress.current_gates.get(&node)).cloned();
        gate.iter().for_each(|gate| gate.stall());
        progress.stalled = gate;
        self.stalled.notify_one();
        Some(Fault::StallBefore)
    }

    /// Resumes a stalled node when all its leases have ended.
    pub(crate) async fn resume_stalled(self: Arc<Self>) {
        self.stalled.notified().await;
        tokio::time::sleep(Duration::from_millis(5 * LEASE_MS / 2)).await;
        let stalled = self.progress().stalled.take();
        stalled.iter().for_each(|gate| gate.resume());
    }

    /// Counts a statement; returns its fault if it is the target.
    pub(crate) fn on_statement(&self, sql: &str) -> Option<StatementFault> {
        self.statements.on_moment(sql.trim_start().starts_with("COMMIT"))
    }

    /// Whether a call that returned an error may have been committed.
    pub(crate) fn may_hide_commits(&self) -> bool {
        matches!(self.target, Some(Target::Statement(..)))
    }

    /// The last poll of a life, if the target ends that life.
    pub(crate) fn last_poll(&self, node: usize, life: u64) -> Option<u64> {
        match self.target {
            Some(Target::Poll(dies, at)) if (dies, 0) == (node, life) => Some(at),
            _ => None,
        }
    }

    /// Records that a life begins.
    pub(crate) fn life_begins(&self, node: usize, life: u64, gate: &Arc<PollGate>) {
        self.progress().current_gates.insert(node, Arc::clone(gate));
        if life == 0 {
            self.progress().first_gates.insert(node, Arc::clone(gate));
        }
    }

    /// Records how an instance ended.
    pub(crate) fn instance_ended(&self, instance: &str, how: String) {
        self.progress().endings.insert(instance.to_string(), how);
    }

    pub(crate) fn moments(&self) -> Moments {
        let progress = self.progress();
        Moments {
            calls: self.calls.moments(),
            statements: self.statements.moments(),
            polls: progress.first_gates.values().map(|gate| gate.polls()).collect(),
            endings: progress.endings.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_target_gets_the_fault() {
        let probe = SweepProbe::new(Some(Target::Call(1, Fault::LostAnswer)));
        let hit: Vec<_> = (0..3).map(|_| probe.on_call(Some(0))).collect();
        assert_eq!(hit, [None, Some(Fault::LostAnswer), None]);
        assert_eq!(probe.on_statement("COMMIT"), None);
        let probe = SweepProbe::new(Some(Target::Statement(1, StatementFault::After)));
        assert_eq!(
            (probe.on_statement("BEGIN"), probe.on_statement("COMMIT")),
            (None, Some(StatementFault::After))
        );
        assert_eq!(probe.moments().statements, [false, true]);
        let probe = SweepProbe::new(Some(Target::Poll(1, 7)));
        assert_eq!(
            [(0, 0), (1, 0), (1, 1)].map(|(node, life)| probe.last_poll(node, life)),
            [None, Some(7), None]
        );
    }
}
