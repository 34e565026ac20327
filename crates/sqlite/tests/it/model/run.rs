//! The same sequence on the specification and on the SQLite store, compared after every call.

use super::apply::{Answer, Target, apply};
use super::build::{Known, Moment};
use super::ops::*;
use crate::factory::raw;
use outlast_memory::MemoryProvider;
use outlast_model::WorkItem;
use outlast_provider::{Clock, Provider, ProviderError};
use outlast_sqlite::{SqliteOptions, SqliteProvider, Synchronous};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Time that only a sequence moves.
struct Hand(AtomicU64);

impl Clock for Hand {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A lease that both stores gave out: the tokens of the specification and of the SQLite store.
struct Lease {
    tokens: [String; 2],
    instance: String,
    execution: u64,
    work: Option<WorkItem>,
    is_done: bool,
}

/// Both stores, and the leases that they gave out.
pub(super) struct Pair {
    clock: Arc<Hand>,
    /// The latest time that the clock has shown.
    latest: u64,
    memory: MemoryProvider,
    path: PathBuf,
    /// `None` only while it is opened again.
    sqlite: Option<SqliteProvider>,
    raw: Connection,
    turns: Vec<Lease>,
    work: Vec<Lease>,
}

impl Pair {
    pub(super) async fn open(path: &Path) -> Self {
        let clock = Arc::new(Hand(AtomicU64::new(1_000_000)));
        let sqlite = open(path, &clock).await;
        Self {
            memory: MemoryProvider::with_clock(Arc::clone(&clock) as Arc<dyn Clock>),
            path: path.to_owned(),
            sqlite: Some(sqlite),
            raw: raw(path),
            latest: clock.now_ms(),
            clock,
            turns: Vec::new(),
            work: Vec::new(),
        }
    }

    /// Runs a sequence and the closing reads. The error says where the stores part.
    pub(super) async fn run(&mut self, ops: &[Op]) -> Result<(), String> {
        for (step, op) in ops.iter().chain(&sweep()).enumerate() {
            let compared = self.step(step + 1, op).await;
            compared.map_err(|difference| format!("call {}, {op:?}\n{difference}", step + 1))?;
        }
        Ok(())
    }

    async fn step(&mut self, step: usize, op: &Op) -> Result<(), String> {
        self.around(op).await;
        let at = Moment { now: self.clock.now_ms(), step };
        let [by_memory, by_sqlite] = self.targets(op);
        let sqlite = self.sqlite.as_ref().expect("it is open");
        let expected = apply(op, at, &by_memory, &self.memory as &dyn Provider).await;
        let found = apply(op, at, &by_sqlite, sqlite as &dyn Provider).await;
        same(&verdict(op, &expected), &verdict(op, &found))?;
        if let (Ok(expected), Ok(found)) = (expected, found) {
            self.remember(op, &by_memory.token, expected, found);
        }
        if let Op::Read(_) = op {
            return Ok(());
        }
        let stored = self.sqlite.as_ref().expect("it is open").dump().await;
        let mut stored = stored.map_err(|error| error.to_string())?;
        // An activity was visible when it was enqueued, by the clock of that moment.
        self.latest = self.latest.max(at.now);
        if self.latest > at.now {
            stored.retain(|line| !line.ends_with(" an unmarked activity that waits for its time"));
        }
        same(&comparable(self.memory.dump()), &comparable(stored))
    }

    /// What is not a call.
    async fn around(&mut self, op: &Op) {
        match op {
            Op::Advance(ms) => drop(self.clock.0.fetch_add(*ms, Ordering::Relaxed)),
            Op::SetBack(ms) => {
                let now = self.clock.now_ms();
                self.clock.0.store(now.saturating_sub(*ms).max(1), Ordering::Relaxed);
            }
            Op::Reopen => {
                self.sqlite = None;
                self.sqlite = Some(open(&self.path, &self.clock).await);
            }
            Op::Damage(what, id) => {
                let sql = match what {
                    Damage::History => "UPDATE history SET event_data = ?2 WHERE instance_id = ?1",
                    Damage::Messages => "UPDATE orchestrator_queue SET work_item = ?2 WHERE instance_id = ?1",
                    Damage::Work => "UPDATE worker_queue SET work_item = ?2 WHERE instance_id = ?1",
                };
                self.raw.execute(sql, [id, "NOT_VALID_JSON{{{"]).unwrap();
                match what {
                    Damage::History => self.memory.corrupt_history(id),
                    Damage::Messages => self.memory.corrupt_messages(id),
                    Damage::Work => self.memory.corrupt_work(id),
                }
            }
            _ => {}
        }
    }

    /// What a call is about, for either store.
    fn targets(&self, op: &Op) -> [Target; 2] {
        let (token, execution) = match op {
            Op::AckTurn { token, execution, .. } | Op::AckAhead { token, execution, .. } => {
                (*token, *execution)
            }
            Op::AbandonTurn { token, .. }
            | Op::RenewTurn { token, .. }
            | Op::AckWork { token, .. }
            | Op::AbandonWork { token, .. }
            | Op::RenewWork { token, .. } => (*token, Execution::Fetched),
            Op::Append { to, execution, .. } => {
                let target = Target { known: self.known(to, *execution), ..Target::default() };
                return [target.clone(), target];
            }
            _ => return Default::default(),
        };
        let lease = self.lease(token);
        let bogus = if let Token::Bogus(text) = token { text } else { "none yet" };
        let tokens =
            lease.map_or_else(|| [bogus.to_string(), bogus.to_string()], |lease| lease.tokens.clone());
        let instance = lease.map_or_else(|| "a".to_string(), |lease| lease.instance.clone());
        let fetched = lease.map_or(1, |lease| lease.execution);
        let execution = match execution {
            Execution::Fetched => fetched,
            Execution::Next => fetched + 1,
            Execution::Number(number) => number,
        };
        let known = self.known(&instance, execution);
        let work = lease.and_then(|lease| lease.work.clone());
        tokens.map(|token| Target { token, instance: instance.clone(), execution, known, work: work.clone() })
    }

    fn lease(&self, token: Token) -> Option<&Lease> {
        let (leases, wanted, age) = match token {
            Token::Turn(age) => (&self.turns, false, age),
            Token::Work(age) => (&self.work, false, age),
            Token::DoneTurn(age) => (&self.turns, true, age),
            Token::DoneWork(age) => (&self.work, true, age),
            Token::Bogus(_) => return None,
        };
        leases.iter().rev().filter(|lease| lease.is_done == wanted).nth(age)
    }

    /// What is stored of an execution, readable or not.
    fn known(&self, instance: &str, execution: u64) -> Known {
        let sql = "SELECT ifnull(max(event_id), 0), ifnull(max(event_type IN ('OrchestrationCompleted',
                   'OrchestrationFailed', 'OrchestrationContinuedAsNew')), 0)
                   FROM history WHERE instance_id = ?1 AND execution_id = ?2";
        let mut statement = self.raw.prepare_cached(sql).unwrap();
        let key = (instance, i64::try_from(execution).unwrap());
        let (last_event, is_over) =
            statement.query_row(key, |row| Ok((row.get::<_, i64>(0)?, row.get(1)?))).unwrap();
        Known { last_event: u64::try_from(last_event).unwrap(), is_over }
    }

    fn remember(&mut self, op: &Op, token: &str, expected: Answer, found: Answer) {
        if let Op::AckTurn { .. }
        | Op::AbandonTurn { .. }
        | Op::AckWork { .. }
        | Op::AckAhead { .. }
        | Op::AbandonWork { .. } = op
        {
            let given_back =
                self.turns.iter_mut().chain(&mut self.work).find(|lease| lease.tokens[0] == token);
            given_back.into_iter().for_each(|lease| lease.is_done = true);
        }
        if let (Some((memory, instance, execution)), Some((sqlite, ..))) = (expected.turn, found.turn) {
            let taken_over = self.turns.iter_mut().filter(|lease| lease.instance == instance);
            taken_over.for_each(|lease| lease.is_done = true);
            let tokens = [memory, sqlite];
            self.turns.push(Lease { tokens, instance, execution, work: None, is_done: false });
        }
        for ((memory, item), (sqlite, _)) in expected.work.into_iter().zip(found.work) {
            let taken_over = self.work.iter_mut().filter(|lease| lease.work.as_ref() == Some(&item));
            taken_over.for_each(|lease| lease.is_done = true);
            let (tokens, instance) = ([memory, sqlite], item.target_instance().to_string());
            self.work.push(Lease { tokens, instance, execution: 1, work: Some(item), is_done: false });
        }
    }
}

async fn open(path: &Path, clock: &Arc<Hand>) -> SqliteProvider {
    let options = SqliteOptions {
        inline: true,
        // Nobody pulls the plug here.
        synchronous: Synchronous::Normal,
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        ..SqliteOptions::default()
    };
    SqliteProvider::new(&format!("sqlite:{}", path.display()), Some(options)).await.unwrap()
}

/// What two stores must agree on: the answer, or the class of the error and the words that callers look for.
fn verdict(op: &Op, answered: &Result<Answer, ProviderError>) -> String {
    match answered {
        Ok(answer) => format!("Ok {}", answer.text),
        Err(error) if is_malformed(op) => format!("Err retryable: {}", error.retryable),
        Err(error) => format!("Err retryable: {}, about: {:?}", error.retryable, words(&error.message)),
    }
}

/// A call that is wrong in itself may be wrong in other ways too, and then any of them may be named.
fn is_malformed(op: &Op) -> bool {
    match op {
        Op::AckAhead { completion: Completion::Other(_), .. } => true,
        Op::AckTurn { turn, .. } | Op::AckAhead { turn, .. } => {
            let is_activity = |message: &Message| matches!(message, Message::Activity { .. });
            let odd = |id: &EventId| matches!(id, EventId::Zero | EventId::Repeat);
            turn.events.iter().any(|(id, _)| odd(id))
                || turn.work.iter().any(|item| !is_activity(item) || item.is_for_nobody())
                || turn.messages.iter().any(|item| is_activity(item) || item.is_for_nobody())
        }
        Op::AckWork { completion: Some(Completion::Other(_)), .. } | Op::Read(Read::BogusPage(_)) => true,
        _ => false,
    }
}

/// The texts that section 3 of the contract names.
fn words(message: &str) -> Vec<&'static str> {
    let message = message.to_lowercase();
    let about = [
        ("token", &["invalid lock token", "lock_token"][..]),
        ("running", &["running"]),
        ("missing", &["not found"]),
        ("child", &["sub-orchestration", "root", "parent"]),
        ("orphan", &["child", "orphan", "tree"]),
    ];
    let named = about.into_iter().filter(|(_, texts)| texts.iter().any(|text| message.contains(text)));
    named.map(|(name, _)| name).collect()
}

/// Line by line, so that a difference in a large store is found at a glance.
fn same(expected: &str, found: &str) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    let missing = expected.lines().filter(|line| !found.lines().any(|other| other == *line));
    let extra = found.lines().filter(|line| !expected.lines().any(|other| other == *line));
    let lines: Vec<String> = missing
        .map(|line| format!("  specification: {line}"))
        .chain(extra.map(|line| format!("  sqlite:        {line}")))
        .collect();
    match lines.is_empty() {
        true => Err(format!("  the same lines, in other numbers:\n{expected}\n  sqlite:\n{found}")),
        false => Err(lines.join("\n")),
    }
}

/// One text, sorted. A column ends where an `i64` ends, which is as good as for ever.
fn comparable(lines: Vec<String>) -> String {
    let (most, for_ever) = (u64::MAX.to_string(), i64::MAX.to_string());
    let mut lines: Vec<String> = lines.into_iter().map(|line| line.replace(&most, &for_ever)).collect();
    lines.sort();
    lines.join("\n")
}
