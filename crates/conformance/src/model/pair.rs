//! Runs a sequence on the specification and on another store, and compares them after every call.

use super::apply::{Answer, Target, apply};
use super::build::CallTime;
use super::compare::{comparable, same, verdict};
use super::ops::*;
use super::subject::{Hand, Subject};
use outlast_memory::MemoryProvider;
use outlast_provider::model::WorkItem;
use outlast_provider::{AuditEntry, Clock, Provider, ResetOutcome, ResetPlan, TurnCommit};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A lease of both stores: the tokens of the specification and of the subject.
struct Lease {
    tokens: [String; 2],
    instance: String,
    execution: u64,
    work: Option<WorkItem>,
    is_done: bool,
}

/// Both stores and their leases.
pub(super) struct Pair<'a> {
    clock: Arc<Hand>,
    memory: MemoryProvider,
    subject: &'a mut dyn Subject,
    turns: Vec<Lease>,
    work: Vec<Lease>,
    /// Whether the subject can hold instances and keeps an audit.
    holds: bool,
    /// Whether the subject can reset instances.
    resets: bool,
}

fn is_about_holds(op: &Op) -> bool {
    matches!(
        op,
        Op::HoldTurn { .. }
            | Op::Hold(_)
            | Op::Release(_)
            | Op::PauseOrchestration(_)
            | Op::ResumeOrchestration(_)
            | Op::Read(Read::Held(_) | Read::HeldCounts | Read::PausedOrchestrations | Read::Audit(_))
    )
}

/// The plan of a reset of an instance that does not exist.
fn of_nothing() -> ResetPlan {
    ResetPlan {
        source: "nobody".to_string(),
        execution_id: 1,
        last_event_id: 1,
        target: "nobody".to_string(),
        end: None,
        begin: TurnCommit { execution_id: 2, ..TurnCommit::default() },
        first_messages: Vec::new(),
        first_available_ms: 0,
        keys: BTreeMap::new(),
        custom_status: None,
        audit: AuditEntry::default(),
    }
}

impl<'a> Pair<'a> {
    /// A pair with an empty store.
    pub(super) async fn new(subject: &'a mut dyn Subject) -> Self {
        let clock = Arc::new(Hand::default());
        let memory = MemoryProvider::with_clock(Arc::clone(&clock) as Arc<dyn Clock>)
            .with_message_bound(subject.message_bound());
        let admin = subject.provider().as_management_capability().expect("both stores can be managed");
        let holds = admin.count_held().await.is_ok_and(|counts| counts.is_some());
        let resets = holds && admin.reset_instance(&of_nothing()).await == Ok(ResetOutcome::NotFound);
        let mut pair = Self { clock, memory, subject, turns: Vec::new(), work: Vec::new(), holds, resets };
        pair.set_time(1_000_000).await;
        pair
    }

    async fn set_time(&mut self, now: u64) {
        self.clock.set(now);
        self.subject.set_time(now).await;
    }

    /// Runs a sequence and the closing reads. The error names the difference.
    pub(super) async fn run(&mut self, ops: &[Op]) -> Result<(), String> {
        for (step, op) in ops.iter().chain(&sweep()).enumerate() {
            let compared = self.step(step + 1, op).await;
            compared.map_err(|difference| format!("call {}, {op:?}\n{difference}", step + 1))?;
        }
        Ok(())
    }

    async fn step(&mut self, step: usize, op: &Op) -> Result<(), String> {
        let is_supported = match op {
            Op::StartAhead { .. } => self.subject.starts_with_turn(),
            Op::AckFused { .. } => self.subject.provider().fuses_outcomes(),
            Op::Reset(_) => self.resets,
            op => self.holds || !is_about_holds(op),
        };
        if !is_supported {
            return Ok(());
        }
        self.around(op).await;
        let at = CallTime { now: self.clock.now_ms(), step };
        let [by_memory, by_subject] = self.targets(op, at).await;
        let provider = self.subject.provider();
        let expected = apply(op, at, &by_memory, &self.memory as &dyn Provider).await;
        let found = apply(op, at, &by_subject, provider).await;
        same(provider.name(), &verdict(op, &expected), &verdict(op, &found))?;
        if let (Ok(expected), Ok(found)) = (expected, found) {
            self.remember(op, &by_memory, expected, found);
        }
        if let Op::Read(_) = op {
            return Ok(());
        }
        let stored = self.subject.dump().await;
        same(self.subject.provider().name(), &comparable(self.memory.dump()), &comparable(stored))
    }

    /// Applies an operation that is not a call.
    async fn around(&mut self, op: &Op) {
        match op {
            Op::Advance(ms) => self.set_time(self.clock.now_ms() + ms).await,
            Op::SetBack(ms) => self.set_time(self.clock.now_ms().saturating_sub(*ms).max(1)).await,
            Op::Reopen => self.subject.reopen().await,
            Op::Damage(what, id) => {
                self.subject.damage(*what, id).await;
                match what {
                    Damage::History => self.memory.corrupt_history(id),
                    Damage::Messages => self.memory.corrupt_messages(id),
                    Damage::Work => self.memory.corrupt_activities(id),
                }
            }
            _ => {}
        }
    }

    /// The target of a call, for each store.
    async fn targets(&self, op: &Op, at: CallTime) -> [Target; 2] {
        let (token, execution) = match op {
            Op::AckTurn { token, execution, .. } | Op::AckAhead { token, execution, .. } => {
                (*token, *execution)
            }
            Op::AbandonTurn { token, .. }
            | Op::RenewTurn { token, .. }
            | Op::HoldTurn { token }
            | Op::AckWork { token, .. }
            | Op::AbandonWork { token, .. }
            | Op::NoteWork { token, .. }
            | Op::RenewWork { token, .. } => (*token, Execution::Fetched),
            Op::Append { to, execution, .. } => {
                let stored = self.subject.stored(to, *execution).await;
                let target = Target { stored, ..Target::default() };
                return [target.clone(), target];
            }
            Op::AckFused { tokens, .. } => return self.targets_of_all(tokens).await,
            Op::StartAhead { to, .. } => {
                let stored = self.subject.stored(to, 1).await;
                let target = Target { stored, ..Target::default() };
                return [target.clone(), target];
            }
            Op::Reset(branch) => {
                let specification = self.memory.as_management_capability().expect("it can be managed");
                let target = Target { plan: branch.plan(at, specification).await, ..Target::default() };
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
        let stored = self.subject.stored(&instance, execution).await;
        let work = lease.and_then(|lease| lease.work.clone());
        tokens.map(|token| Target {
            token,
            instance: instance.clone(),
            execution,
            stored,
            work: work.clone(),
            all: Vec::new(),
            plan: None,
        })
    }

    /// The targets of a call with several leases. Its turn is that of the instance of the first one.
    async fn targets_of_all(&self, tokens: &[Token]) -> [Target; 2] {
        let first = tokens.first().and_then(|token| self.lease(*token));
        let instance = first.map_or_else(|| "a".to_string(), |lease| lease.instance.clone());
        let stored = self.subject.stored(&instance, 1).await;
        [0, 1].map(|store| {
            let own = |token: &Token| match self.lease(*token) {
                Some(lease) => (lease.tokens[store].clone(), lease.work.clone()),
                None => ("none yet".to_string(), None),
            };
            let all = tokens.iter().map(own).collect();
            Target { instance: instance.clone(), execution: 1, stored, all, ..Target::default() }
        })
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

    fn remember(&mut self, op: &Op, target: &Target, expected: Answer, found: Answer) {
        let token = &target.token;
        if expected.text.starts_with("WithTurn") {
            let is_done = |lease: &Lease| target.all.iter().any(|(token, _)| *token == lease.tokens[0]);
            self.work.iter_mut().filter(|lease| is_done(lease)).for_each(|lease| lease.is_done = true);
        }
        if let Op::AckTurn { .. }
        | Op::AbandonTurn { .. }
        | Op::AckWork { .. }
        | Op::AckAhead { .. }
        | Op::AbandonWork { .. }
        | Op::NoteWork { .. }
        | Op::HoldTurn { .. } = op
            && !expected.text.contains("Cancelled")
        {
            let given_back =
                self.turns.iter_mut().chain(&mut self.work).find(|lease| lease.tokens[0] == *token);
            given_back.into_iter().for_each(|lease| lease.is_done = true);
        }
        if let (Some((memory, instance, execution)), Some((subject, ..))) = (expected.turn, found.turn) {
            let taken_over = self.turns.iter_mut().filter(|lease| lease.instance == instance);
            taken_over.for_each(|lease| lease.is_done = true);
            let tokens = [memory, subject];
            self.turns.push(Lease { tokens, instance, execution, work: None, is_done: false });
        }
        for ((memory, item), (subject, _)) in expected.work.into_iter().zip(found.work) {
            let taken_over = self.work.iter_mut().filter(|lease| lease.work.as_ref() == Some(&item));
            taken_over.for_each(|lease| lease.is_done = true);
            let (tokens, instance) = ([memory, subject], item.target_instance().to_string());
            self.work.push(Lease { tokens, instance, execution: 1, work: Some(item), is_done: false });
        }
    }
}
