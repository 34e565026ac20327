//! The state that the page of the demo shows. The supervisor keeps it; requests of the page read it.
#![cfg_attr(not(feature = "server"), allow(dead_code, reason = "only the page reads the state"))]

use super::board::{Board, News};
use super::books::Tally;
use super::crew::WORKERS;
use super::goods::{Order, money, some};
use super::order::{AWAITS_APPROVAL, Ending};
use super::report::{Report, Work};
use super::screen::word;
use outlast::providers::{Clock, SystemClock};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most open orders, ended orders and kills on the page.
const OPEN: usize = 14;
const ENDED: usize = 10;
const KILLS: usize = 4;
/// The most activities of a killed worker on the page.
const HELD: usize = 6;
/// A visitor is present for this time after a request of the page.
const PRESENT_MS: u64 = 5_000;
/// The time that a visitor has to answer an order. Then the shop approves it by itself.
pub(super) const ANSWER_MS: u64 = 60_000;
/// The most orders that wait for the visitor at the same time.
const FOR_VISITOR: usize = 2;

/// The shared state.
#[derive(Clone)]
pub(super) struct Stage(Arc<Mutex<State>>);

#[derive(Serialize)]
struct State {
    now_ms: u64,
    batch: u32,
    orders: u32,
    placed: usize,
    delivered: usize,
    undone: usize,
    prevented: usize,
    charged_twice: usize,
    phase: Phase,
    /// Whether the demo stays after the proof, so that another batch can be started.
    stays: bool,
    proof: Option<String>,
    workers: Vec<Worker>,
    kills: VecDeque<Kill>,
    waiting: Vec<Waiting>,
    open: Vec<Row>,
    open_left_out: usize,
    ended: VecDeque<Row>,
    /// Orders that were placed for the visitor, and the time until which the shop leaves them to the visitor.
    #[serde(skip)]
    for_visitor: BTreeMap<String, (u64, Order)>,
    #[serde(skip)]
    visited_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    Running,
    Proven,
    Disproven,
}

#[derive(Serialize)]
struct Worker {
    worker: u32,
    /// The process; `None` while it is being replaced.
    process: Option<u32>,
    #[serde(skip)]
    running: BTreeMap<String, Work>,
    activities: usize,
}

/// A killed worker, and the activities that it ran.
#[derive(Serialize)]
struct Kill {
    worker: u32,
    process: u32,
    at_ms: u64,
    held: Vec<Held>,
    held_left_out: usize,
}

#[derive(Serialize)]
struct Held {
    activity: String,
    instance: String,
    #[serde(skip)]
    key: String,
    taken: Option<Taken>,
}

/// The worker that ran the activity of a killed one again.
#[derive(Serialize)]
struct Taken {
    worker: u32,
    after_ms: u64,
}

/// An order that waits for the visitor.
#[derive(Serialize)]
struct Waiting {
    order: String,
    customer: String,
    total: String,
    items: String,
    until_ms: u64,
}

#[derive(Serialize)]
struct Row {
    order: String,
    customer: String,
    total: String,
    state: String,
    tone: &'static str,
}

impl Stage {
    pub(super) fn new(stays: bool) -> Self {
        let worker = |worker| Worker { worker, process: None, running: BTreeMap::new(), activities: 0 };
        Self(Arc::new(Mutex::new(State {
            now_ms: 0,
            batch: 0,
            orders: 0,
            placed: 0,
            delivered: 0,
            undone: 0,
            prevented: 0,
            charged_twice: 0,
            phase: Phase::Running,
            stays,
            proof: None,
            workers: WORKERS.map(worker).into(),
            kills: VecDeque::new(),
            waiting: Vec::new(),
            open: Vec::new(),
            open_left_out: 0,
            ended: VecDeque::new(),
            for_visitor: BTreeMap::new(),
            visited_ms: 0,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new batch begins.
    pub(super) fn opens(&self) {
        let mut state = self.state();
        (state.phase, state.proof) = (Phase::Running, None);
        state.kills.clear();
        state.ended.clear();
        state.for_visitor.clear();
    }

    pub(super) fn proves(&self, text: String, holds: bool) {
        let mut state = self.state();
        state.phase = if holds { Phase::Proven } else { Phase::Disproven };
        state.proof = Some(text);
    }

    /// A process of a worker has started.
    pub(super) fn started(&self, worker: u32, process: u32) {
        if let Some(worker) = self.state().worker(worker) {
            worker.process = Some(process);
        }
    }

    /// The process of a worker has ended. The activities of a killed one wait for the other worker.
    pub(super) fn ended(&self, worker: u32, is_killed: bool) {
        let mut state = self.state();
        let Some(found) = state.worker(worker) else { return };
        let (process, running) = (found.process.take(), std::mem::take(&mut found.running));
        found.activities = 0;
        if let (true, Some(process)) = (is_killed, process) {
            let held_left_out = running.len().saturating_sub(HELD);
            let held = running.into_values().take(HELD).map(|work| Held {
                activity: work.activity,
                instance: work.instance,
                key: work.key,
                taken: None,
            });
            let at_ms = SystemClock.now_ms();
            let kill = Kill { worker, process, at_ms, held: held.collect(), held_left_out };
            state.kills.push_front(kill);
            state.kills.truncate(KILLS);
        }
    }

    /// A worker has begun or ended an activity.
    pub(super) fn reported(&self, worker: u32, report: Report) {
        let mut state = self.state();
        if let Report::Begins(work) = &report {
            state.takes_over(worker, &work.key);
        }
        let Some(worker) = state.worker(worker) else { return };
        match report {
            Report::Begins(work) => drop(worker.running.insert(work.key.clone(), work)),
            Report::Returns { key } => drop(worker.running.remove(&key)),
        }
        worker.activities = worker.running.len();
    }

    /// Whether the order is left to the visitor: one is present, and has not too many orders to answer.
    pub(super) fn keeps_for_visitor(&self, order: &Order) -> bool {
        let mut state = self.state();
        let now_ms = SystemClock.now_ms();
        let is_kept = state.is_visited(now_ms) && state.for_visitor.len() < FOR_VISITOR;
        if is_kept && order.needs_approval() {
            state.for_visitor.insert(order.id.clone(), (now_ms + ANSWER_MS, order.clone()));
            return true;
        }
        false
    }

    /// Whether the order was placed for the visitor, and whether the visitor still has time to answer it.
    pub(super) fn visitor_of(&self, order: &str) -> Option<bool> {
        let state = self.state();
        let now_ms = SystemClock.now_ms();
        let (until_ms, _) = state.for_visitor.get(order)?;
        Some(state.is_visited(now_ms) && now_ms < *until_ms)
    }

    /// Shows the orders.
    pub(super) fn shows(&self, board: &Board) {
        let mut state = self.state();
        (state.batch, state.orders, state.placed) =
            (board.batch.number, board.batch.orders, board.placed_count());
        state.delivered = board.count(Ending::Delivered);
        state.undone = board.ended.len() - state.delivered;
        state.for_visitor.retain(|id, _| !board.ended.contains_key(id));
        let is_waiting = |id: &str| board.open.get(id).is_some_and(|open| open.step == AWAITS_APPROVAL);
        let waiting = state.for_visitor.iter().filter(|(id, _)| is_waiting(id));
        state.waiting = waiting.map(|(id, (until_ms, order))| Waiting::of(id, *until_ms, order)).collect();
        state.open_left_out = board.open.len().saturating_sub(OPEN);
        let newest = board.open.iter().rev().take(OPEN);
        state.open = newest
            .map(|(id, open)| Row {
                order: id.clone(),
                customer: open.customer.clone(),
                total: money(open.cents),
                state: if open.step.is_empty() { "is queued".to_string() } else { open.step.clone() },
                tone: if open.step == AWAITS_APPROVAL { "held" } else { "run" },
            })
            .collect();
    }

    /// An order has ended.
    pub(super) fn hears(&self, news: &News) {
        let (text, tone) = match &news.ended {
            Ok(outcome) => (
                format!("{}: {}", word(outcome.ending), outcome.note),
                if outcome.ending == Ending::Delivered { "ok" } else { "quiet" },
            ),
            Err(error) => (format!("failed: {error}"), "bad"),
        };
        let mut state = self.state();
        state.ended.push_front(Row {
            order: news.order.clone(),
            customer: news.was.customer.clone(),
            total: money(news.was.cents),
            state: text,
            tone,
        });
        state.ended.truncate(ENDED);
    }

    pub(super) fn counts(&self, tally: &Tally) {
        let mut state = self.state();
        (state.prevented, state.charged_twice) = (tally.prevented, tally.charged_twice());
    }

    /// Whether the page was read some seconds ago.
    pub(super) fn has_visitor(&self) -> bool {
        self.state().is_visited(SystemClock.now_ms())
    }

    /// Whether the worker has a process.
    pub(super) fn is_alive(&self, worker: u32) -> bool {
        self.state().worker(worker).is_some_and(|worker| worker.process.is_some())
    }

    /// Whether another batch can be started.
    pub(super) fn is_over(&self) -> bool {
        let state = self.state();
        state.stays && state.phase == Phase::Proven
    }

    /// The state for the page, as JSON.
    pub(super) fn read(&self) -> String {
        let mut state = self.state();
        state.now_ms = SystemClock.now_ms();
        state.visited_ms = state.now_ms;
        // Only texts and numbers: they always have a JSON form.
        serde_json::to_string(&*state).unwrap_or_default()
    }
}

impl State {
    fn worker(&mut self, worker: u32) -> Option<&mut Worker> {
        self.workers.iter_mut().find(|known| known.worker == worker)
    }

    fn is_visited(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.visited_ms) < PRESENT_MS
    }

    /// Notes which worker runs an activity of a killed one.
    fn takes_over(&mut self, worker: u32, key: &str) {
        let now_ms = SystemClock.now_ms();
        for kill in &mut self.kills {
            for held in kill.held.iter_mut().filter(|held| held.key == key && held.taken.is_none()) {
                held.taken = Some(Taken { worker, after_ms: now_ms.saturating_sub(kill.at_ms) });
            }
        }
    }
}

impl Waiting {
    fn of(id: &str, until_ms: u64, order: &Order) -> Self {
        let items: Vec<String> = order
            .items
            .iter()
            .map(|item| some(usize::try_from(item.quantity).unwrap_or(usize::MAX), &item.sku))
            .collect();
        Self {
            order: id.to_string(),
            customer: order.customer.clone(),
            total: money(order.cents()),
            items: items.join(", "),
            until_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::goods::Batch;

    fn work(key: &str) -> Report {
        let (activity, instance) = ("Charge".to_string(), "order-1-001".to_string());
        Report::Begins(Work { key: key.to_string(), activity, instance })
    }

    fn read(stage: &Stage) -> serde_json::Value {
        serde_json::from_str(&stage.read()).unwrap()
    }

    #[test]
    fn activities_of_a_killed_worker_are_shown_until_another_worker_runs_them() {
        let stage = Stage::new(false);
        stage.started(1, 100);
        stage.started(2, 200);
        stage.reported(1, work("a"));
        stage.reported(1, work("b"));
        stage.reported(1, Report::Returns { key: "b".to_string() });
        stage.ended(1, true);
        let shown = read(&stage);
        assert_eq!(shown["workers"][0]["process"], serde_json::Value::Null);
        assert_eq!(
            (&shown["kills"][0]["process"], &shown["kills"][0]["held"][0]["taken"]),
            (&100.into(), &serde_json::Value::Null)
        );
        assert_eq!(shown["kills"][0]["held"].as_array().unwrap().len(), 1, "b had returned");
        stage.reported(2, work("a"));
        assert_eq!(read(&stage)["kills"][0]["held"][0]["taken"]["worker"], 2);
        stage.reported(1, work("a"));
        assert_eq!(read(&stage)["kills"][0]["held"][0]["taken"]["worker"], 2, "the first one counts");
    }

    #[test]
    fn a_worker_that_was_stopped_is_no_kill() {
        let stage = Stage::new(false);
        stage.started(1, 100);
        stage.ended(1, false);
        assert_eq!(read(&stage)["kills"].as_array().unwrap().len(), 0);
        assert!(!stage.is_alive(1));
    }

    #[test]
    fn expensive_orders_wait_for_a_visitor_that_is_present() {
        let batch = Batch { number: 1, orders: 60, seed: 4, pace: 1.0 };
        let mut expensive = batch.ids().map(|id| batch.order(&id)).filter(Order::needs_approval);
        let stage = Stage::new(false);
        let first = expensive.next().unwrap();
        assert!(!stage.keeps_for_visitor(&first), "no visitor yet");
        stage.read();
        let cheap = batch.ids().map(|id| batch.order(&id)).find(|order| !order.needs_approval()).unwrap();
        assert!(!stage.keeps_for_visitor(&cheap));
        assert!(stage.keeps_for_visitor(&first));
        assert_eq!(stage.visitor_of(&first.id), Some(true));
        assert!(stage.keeps_for_visitor(&expensive.next().unwrap()));
        assert!(!stage.keeps_for_visitor(&expensive.next().unwrap()), "two are enough");
        let mut board = Board::new(batch);
        board.placed(&first.id);
        board.open.get_mut(&first.id).unwrap().step = AWAITS_APPROVAL.to_string();
        stage.shows(&board);
        assert_eq!(read(&stage)["waiting"][0]["order"], first.id);
    }
}
