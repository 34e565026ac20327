//! One fault at one chosen moment, and the counting of moments.

use super::run::LEASE_MS;
use crate::fault::Fault;
use crate::heart::Heart;
use outlast_sqlite::StatementFault;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// A moment, and what happens then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// The call of this number, from 0.
    Call(usize, Fault),
    /// The statement of this number.
    Statement(usize, StatementFault),
    /// The process of this number dies in its first life, after so many polls.
    Poll(usize, u64),
}

/// What a plan aims at. Without a target it only counts.
pub(crate) struct Aim {
    target: Option<Target>,
    seen: Mutex<Seen>,
    /// A process stands still.
    stalled: Notify,
}

/// What happened so far.
#[derive(Default)]
struct Seen {
    /// Whether each call was made by a node: clients do not crash.
    calls: Vec<bool>,
    statements: Vec<bool>,
    /// First lives, by node.
    hearts: BTreeMap<usize, Arc<Heart>>,
    /// Current lives, by node.
    alive: BTreeMap<usize, Arc<Heart>>,
    stalled: Option<Arc<Heart>>,
    /// How each instance ended that somebody outside can see.
    endings: BTreeMap<String, String>,
}

/// The moments of one run.
#[derive(Debug, Clone)]
pub(crate) struct Moments {
    /// Whether each call was made by a node.
    pub(crate) calls: Vec<bool>,
    /// Whether each statement was a commit.
    pub(crate) statements: Vec<bool>,
    /// Polls in the first life of each node.
    pub(crate) polls: Vec<u64>,
    pub(crate) endings: BTreeMap<String, String>,
}

impl Aim {
    pub(crate) fn new(target: Option<Target>) -> Arc<Self> {
        Arc::new(Self { target, seen: Mutex::default(), stalled: Notify::new() })
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins: its fault, if it is the one.
    pub(crate) fn call(&self, node: Option<usize>) -> Option<Fault> {
        let mut seen = self.seen();
        seen.calls.push(node.is_some());
        let Some(Target::Call(at, fault)) = self.target else { return None };
        if at + 1 != seen.calls.len() {
            return None;
        }
        if fault != Fault::Stalled {
            return Some(fault);
        }
        // The call waits, and so does everything else in the process.
        let heart = node.and_then(|node| seen.alive.get(&node)).cloned();
        heart.iter().for_each(|heart| heart.stall());
        seen.stalled = heart;
        self.stalled.notify_one();
        Some(Fault::StallBefore)
    }

    /// Lets a process that stands still go on when all its leases have ended.
    pub(crate) async fn revive(self: Arc<Self>) {
        self.stalled.notified().await;
        tokio::time::sleep(Duration::from_millis(5 * LEASE_MS / 2)).await;
        let stalled = self.seen().stalled.take();
        stalled.iter().for_each(|heart| heart.go_on());
    }

    /// A statement begins: its fault, if it is the one.
    pub(crate) fn statement(&self, sql: &str) -> Option<StatementFault> {
        let statements = &mut self.seen().statements;
        statements.push(sql.trim_start().starts_with("COMMIT"));
        match self.target {
            Some(Target::Statement(at, fault)) if at + 1 == statements.len() => Some(fault),
            _ => None,
        }
    }

    /// Whether an error of a call may hide that it was done.
    pub(crate) fn leaves_doubt(&self) -> bool {
        matches!(self.target, Some(Target::Statement(..)))
    }

    /// The poll that a life ends at, if it shall.
    pub(crate) fn last_beat(&self, node: usize, life: u64) -> Option<u64> {
        match self.target {
            Some(Target::Poll(dies, at)) if (dies, 0) == (node, life) => Some(at),
            _ => None,
        }
    }

    /// A life begins.
    pub(crate) fn begins(&self, node: usize, life: u64, heart: &Arc<Heart>) {
        self.seen().alive.insert(node, Arc::clone(heart));
        if life == 0 {
            self.seen().hearts.insert(node, Arc::clone(heart));
        }
    }

    /// An instance has ended.
    pub(crate) fn ended(&self, instance: &str, how: String) {
        self.seen().endings.insert(instance.to_string(), how);
    }

    pub(crate) fn moments(&self) -> Moments {
        let seen = self.seen();
        Moments {
            calls: seen.calls.clone(),
            statements: seen.statements.clone(),
            polls: seen.hearts.values().map(|heart| heart.beats()).collect(),
            endings: seen.endings.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_target_is_hit() {
        let aim = Aim::new(Some(Target::Call(1, Fault::LostAnswer)));
        let hit: Vec<_> = (0..3).map(|_| aim.call(Some(0))).collect();
        assert_eq!(hit, [None, Some(Fault::LostAnswer), None]);
        assert_eq!(aim.statement("COMMIT"), None);
        let aim = Aim::new(Some(Target::Statement(1, StatementFault::After)));
        assert_eq!((aim.statement("BEGIN"), aim.statement("COMMIT")), (None, Some(StatementFault::After)));
        assert_eq!(aim.moments().statements, [false, true]);
        let aim = Aim::new(Some(Target::Poll(1, 7)));
        assert_eq!(
            [(0, 0), (1, 0), (1, 1)].map(|(node, life)| aim.last_beat(node, life)),
            [None, Some(7), None]
        );
    }
}
