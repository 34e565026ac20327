//! Statements of the SQLite store that fail.

use crate::fault::Fault;
use crate::sweep::Aim;
use outlast_sqlite::{StatementFault, StatementFaults};
use outlast_testkit::counts::Counts;
use outlast_testkit::rng::Rng;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Strikes some statements while it is armed.
pub(crate) struct Statements {
    /// In ten thousandths.
    rate: u64,
    spares_rollbacks: bool,
    /// Or one of them, in a sweep.
    aim: Option<Arc<Aim>>,
    armed: AtomicBool,
    state: Mutex<State>,
}

struct State {
    dice: Rng,
    struck: Counts<(&'static str, Fault)>,
}

impl Statements {
    pub(crate) fn new(seed: u64, rate: u64, spares_rollbacks: bool) -> Self {
        let state = State { dice: Rng::stream(seed, "statements"), struck: Counts::default() };
        Self { rate, spares_rollbacks, aim: None, armed: AtomicBool::new(false), state: Mutex::new(state) }
    }

    /// The same in a sweep.
    pub(crate) fn aimed(self, aim: Option<Arc<Aim>>) -> Self {
        Self { aim, ..self }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says whether it was armed before.
    pub(crate) fn arm(&self, armed: bool) -> bool {
        self.armed.swap(armed && (self.rate > 0 || self.aim.is_some()), Relaxed)
    }

    /// Whether an error of a call may hide that it was done.
    pub(crate) fn leave_doubt(&self) -> bool {
        self.rate > 0 || self.aim.as_ref().is_some_and(|aim| aim.leaves_doubt())
    }

    /// What was struck, by the verb of the statement.
    pub(crate) fn struck(&self) -> Counts<(&'static str, Fault)> {
        self.state().struck.clone()
    }

    pub(crate) fn count(&self) -> u64 {
        self.state().struck.total()
    }
}

impl StatementFaults for Statements {
    fn strike(&self, sql: &str) -> Option<StatementFault> {
        // A store in memory would be gone with its connection.
        if !self.armed.load(Relaxed) || (self.spares_rollbacks && sql.starts_with("ROLLBACK")) {
            return None;
        }
        let mut state = self.state();
        if let Some(aim) = &self.aim {
            let strike = aim.statement(sql)?;
            let is_done = strike == StatementFault::After;
            let fault = if is_done { Fault::StatementDone } else { Fault::Statement };
            state.struck.increment((verb(sql), fault));
            return Some(strike);
        }
        // Only a batch that failed needs these.
        let is_rare = ["SAVEPOINT", "RELEASE", "ROLLBACK"].iter().any(|verb| sql.starts_with(verb));
        let weight = if is_rare { 30 } else { 1 };
        if state.dice.below(10_000) >= self.rate * weight {
            return None;
        }
        let (fault, strike) = match state.dice.per_mille(600) {
            true => (Fault::Statement, StatementFault::Before),
            false => (Fault::StatementDone, StatementFault::After),
        };
        state.struck.increment((verb(sql), fault));
        Some(strike)
    }
}

/// A name for tables.
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
    fn statements_are_named_by_what_they_do() {
        assert_eq!(verb("COMMIT"), "sql commit");
        assert_eq!(verb("-- INSERT comes later\nSELECT 1"), "sql select");
        assert_eq!(verb("WITH due AS (SELECT 1) UPDATE t SET a = 1"), "sql update");
    }

    #[test]
    fn only_armed_statements_are_struck() {
        let statements = Statements::new(1, 10_000, true);
        assert_eq!(statements.strike("COMMIT"), None);
        assert!(!statements.arm(true));
        assert!(statements.strike("COMMIT").is_some());
        assert_eq!(statements.strike("ROLLBACK TO call"), None);
        assert!(statements.arm(false));
        assert_eq!((statements.strike("COMMIT"), statements.count()), (None, 1));
    }
}
