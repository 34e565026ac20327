//! Injects failures into statements of the SQLite store.

use crate::fault::Fault;
use crate::sweep::SweepProbe;
use outlast_sqlite::{StatementFault, StatementFaults};
use outlast_testkit::counts::Counts;
use outlast_testkit::rng::Rng;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Makes some statements fail while it is armed.
pub(crate) struct StatementInjector {
    /// Share of failing statements, in ten thousandths.
    rate: u64,
    spares_rollbacks: bool,
    /// In a sweep: chooses the one statement that fails.
    probe: Option<Arc<SweepProbe>>,
    armed: AtomicBool,
    state: Mutex<State>,
}

struct State {
    rng: Rng,
    injected: Counts<(&'static str, Fault)>,
}

impl StatementInjector {
    pub(crate) fn new(seed: u64, rate: u64, spares_rollbacks: bool) -> Self {
        let state = State { rng: Rng::stream(seed, "statements"), injected: Counts::default() };
        Self { rate, spares_rollbacks, probe: None, armed: AtomicBool::new(false), state: Mutex::new(state) }
    }

    /// Lets a sweep choose the statement that fails.
    pub(crate) fn probed(self, probe: Option<Arc<SweepProbe>>) -> Self {
        Self { probe, ..self }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Arms or disarms the injector; returns whether the injector was armed before.
    pub(crate) fn arm(&self, armed: bool) -> bool {
        self.armed.swap(armed && (self.rate > 0 || self.probe.is_some()), Relaxed)
    }

    /// Whether a call that returned an error may have been committed.
    pub(crate) fn may_hide_commits(&self) -> bool {
        self.rate > 0 || self.probe.as_ref().is_some_and(|probe| probe.may_hide_commits())
    }

    /// The injected failures, by the verb of the statement.
    pub(crate) fn injected(&self) -> Counts<(&'static str, Fault)> {
        self.state().injected.clone()
    }

    pub(crate) fn count(&self) -> u64 {
        self.state().injected.total()
    }
}

impl StatementFaults for StatementInjector {
    fn fault_of(&self, sql: &str) -> Option<StatementFault> {
        // A failed rollback closes the connection, which would delete a store in memory.
        if !self.armed.load(Relaxed) || (self.spares_rollbacks && sql.starts_with("ROLLBACK")) {
            return None;
        }
        let mut state = self.state();
        if let Some(probe) = &self.probe {
            let statement_fault = probe.on_statement(sql)?;
            let is_done = statement_fault == StatementFault::After;
            let fault = if is_done { Fault::StatementDone } else { Fault::Statement };
            state.injected.increment((verb(sql), fault));
            return Some(statement_fault);
        }
        // Statements that run only after a failed batch fail more often, because they are rare.
        let is_rare = ["SAVEPOINT", "RELEASE", "ROLLBACK"].iter().any(|verb| sql.starts_with(verb));
        let weight = if is_rare { 30 } else { 1 };
        if state.rng.below(10_000) >= self.rate * weight {
            return None;
        }
        let (fault, statement_fault) = match state.rng.below(10) {
            0..=3 if sql.starts_with("BEGIN") => (Fault::Busy, StatementFault::Busy),
            0..=5 => (Fault::Statement, StatementFault::Before),
            _ => (Fault::StatementDone, StatementFault::After),
        };
        state.injected.increment((verb(sql), fault));
        Some(statement_fault)
    }
}

/// The name of a statement in the table of calls and faults.
fn verb(sql: &str) -> &'static str {
    const VERBS: &[(&str, &str)] = &[
        ("BEGIN", "sql begin"),
        ("COMMIT", "sql commit"),
        ("ROLLBACK", "sql rollback"),
        ("SAVEPOINT", "sql savepoint"),
        ("RELEASE", "sql release"),
        ("INSERT", "sql insert"),
        ("UPDATE", "sql update"),
        ("DELETE", "sql delete"),
    ];
    // A statement may begin with a comment or with a common table expression.
    let code = sql.lines().filter(|line| !line.trim_start().starts_with("--"));
    let words: Vec<&str> = code.flat_map(str::split_whitespace).collect();
    let found = VERBS.iter().find(|(verb, _)| words.contains(verb));
    found.map_or("sql select", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_named_by_their_verb() {
        assert_eq!(verb("COMMIT"), "sql commit");
        assert_eq!(verb("-- INSERT comes later\nSELECT 1"), "sql select");
        assert_eq!(verb("WITH due AS (SELECT 1) UPDATE t SET a = 1"), "sql update");
    }

    #[test]
    fn statements_fail_only_while_armed() {
        let statements = StatementInjector::new(1, 10_000, true);
        assert_eq!(statements.fault_of("COMMIT"), None);
        assert!(!statements.arm(true));
        assert!(statements.fault_of("COMMIT").is_some());
        assert_eq!(statements.fault_of("ROLLBACK TO call"), None);
        assert!(statements.arm(false));
        assert_eq!((statements.fault_of("COMMIT"), statements.count()), (None, 1));
    }
}
