//! The proof that no order was lost and no customer charged twice: from the ledger, compared with the store.

use super::board::Board;
use super::entry::{Because, Entry, Line};
use super::goods::{Batch, Order, money, some};
use super::order::Ending;
use super::screen::word;
use std::collections::{BTreeMap, BTreeSet};

/// The result of the check.
#[derive(Debug, Default)]
pub(super) struct Proof {
    /// The errors, each with its order.
    pub(super) problems: Vec<String>,
    orders: usize,
    endings: BTreeMap<Ending, usize>,
    charges: usize,
    charged_cents: u64,
    refunds: usize,
    refunded_cents: u64,
    delivered_cents: u64,
    gateway_failures: usize,
    answers_lost: usize,
    /// The number of rejected duplicates by cause.
    after_lost_answer: usize,
    after_restart: usize,
    /// The number of supervisors that ran the batch.
    processes: usize,
    workers_killed: usize,
}

/// The ledger entries of one order.
#[derive(Debug, Default)]
struct Traces<'a> {
    placed: usize,
    reserved: usize,
    released: usize,
    charged: Vec<u64>,
    refunded: Vec<u64>,
    packed: Vec<&'a str>,
    shipped: usize,
    handed_over: usize,
    invoiced: Vec<u64>,
    apologised: usize,
}

impl Proof {
    /// Checks a finished batch.
    pub(super) fn of(lines: &[Line], board: &Board) -> Self {
        let begin = |line: &Line| matches!(&line.entry, Entry::Batch(batch) if *batch == board.batch);
        let lines = lines.iter().rposition(begin).map_or(&[][..], |begin| &lines[begin..]);
        let mut proof = Self { orders: board.batch.orders as usize, ..Self::default() };
        proof.check_keys(lines);
        let mut traces: BTreeMap<&str, Traces<'_>> = BTreeMap::new();
        for line in lines {
            proof.count(&line.entry);
            if let Some(order) = line.entry.order() {
                traces.entry(order).or_default().add(&line.entry);
            }
        }
        for id in board.batch.ids() {
            let traces = traces.remove(id.as_str()).unwrap_or_default();
            proof.check_order(&board.batch, &id, &traces, board);
        }
        for stranger in traces.keys() {
            proof.problems.push(format!("{stranger}: the ledger has an order that was not placed"));
        }
        if proof.charged_cents.checked_sub(proof.refunded_cents) != Some(proof.delivered_cents) {
            proof.problems.push(format!(
                "{} was charged and {} given back, but goods for {} were delivered",
                money(proof.charged_cents),
                money(proof.refunded_cents),
                money(proof.delivered_cents)
            ));
        }
        proof
    }

    pub(super) fn holds(&self) -> bool {
        self.problems.is_empty()
    }

    fn check_keys(&mut self, lines: &[Line]) {
        let mut keys = BTreeSet::new();
        for key in lines.iter().filter_map(|line| line.key.as_deref()) {
            if !keys.insert(key) {
                self.problems.push(format!("what is called {key} was done twice"));
            }
        }
    }

    fn count(&mut self, entry: &Entry) {
        match entry {
            Entry::Opened { .. } => self.processes += 1,
            Entry::WorkerKilled { .. } => self.workers_killed += 1,
            Entry::Unavailable { .. } => self.gateway_failures += 1,
            Entry::Charged { cents, answer_lost, .. } => {
                self.answers_lost += usize::from(*answer_lost);
                self.charges += 1;
                self.charged_cents += cents;
            }
            Entry::Refunded { cents, .. } => {
                self.refunds += 1;
                self.refunded_cents += cents;
            }
            Entry::Refused { because: Because::AnswerLost, .. } => self.after_lost_answer += 1,
            Entry::Refused { because: Because::DeliveredAgain, .. } => self.after_restart += 1,
            _ => {}
        }
    }

    fn check_order(&mut self, batch: &Batch, id: &str, traces: &Traces<'_>, board: &Board) {
        let ending = match board.ended.get(id) {
            Some(Ok(outcome)) => outcome.ending,
            Some(Err(error)) => {
                self.problems.push(format!("{id}: failed: {error}"));
                return;
            }
            None => {
                self.problems.push(format!("{id}: lost: the store does not say how it ended"));
                return;
            }
        };
        *self.endings.entry(ending).or_default() += 1;
        let order = batch.order(id);
        let problems = match ending {
            Ending::Delivered => {
                self.delivered_cents += order.cents();
                traces.of_goods(&order)
            }
            Ending::Cancelled => {
                // A request that comes after the delivery finds nothing to undo.
                if traces.handed_over > 0 && traces.refunded.is_empty() {
                    self.delivered_cents += order.cents();
                }
                traces.of_cancellation()
            }
            _ => traces.of_apology(),
        };
        self.problems.extend(problems.into_iter().map(|problem| format!("{id}: {problem}")));
    }

    /// The text for the user.
    pub(super) fn text(&self) -> String {
        let endings: Vec<String> =
            self.endings.iter().map(|(ending, count)| format!("{count} {}", word(*ending))).collect();
        let prevented = self.after_lost_answer + self.after_restart;
        let mut text = format!(
            "Proof, read back from the ledger\n  \
             orders      {} placed, {} ended: {}\n  \
             money       {} of {} in all, {} of {}; goods for {} were delivered\n  \
             gateway     {} failed, {} lost\n  \
             duplicates  {prevented} prevented: {} after a lost answer, {} after a restart\n  \
             restarts    {} survived{}\n",
            self.orders,
            self.endings.values().sum::<usize>(),
            endings.join(", "),
            some(self.charges, "charge"),
            money(self.charged_cents),
            some(self.refunds, "refund"),
            money(self.refunded_cents),
            money(self.delivered_cents),
            some(self.gateway_failures, "call"),
            some(self.answers_lost, "answer"),
            self.after_lost_answer,
            self.after_restart,
            self.processes.saturating_sub(1),
            match self.workers_killed {
                0 => String::new(),
                killed => format!(", and {} killed", some(killed, "worker")),
            },
        );
        if self.holds() {
            text.push_str("  It holds: no order was lost, nobody was charged twice, nothing was done twice.");
            return text;
        }
        text.push_str("  IT DOES NOT HOLD:");
        for problem in &self.problems {
            text.push_str(&format!("\n    {problem}"));
        }
        text
    }
}

impl<'a> Traces<'a> {
    fn add(&mut self, entry: &'a Entry) {
        match entry {
            Entry::Placed { .. } => self.placed += 1,
            Entry::Reserved { .. } => self.reserved += 1,
            Entry::Released { .. } => self.released += 1,
            Entry::Charged { cents, .. } => self.charged.push(*cents),
            Entry::Refunded { cents, .. } => self.refunded.push(*cents),
            Entry::Packed { sku, .. } => self.packed.push(sku),
            Entry::Shipped { .. } => self.shipped += 1,
            Entry::HandedOver { .. } => self.handed_over += 1,
            Entry::Invoiced { cents, .. } => self.invoiced.push(*cents),
            Entry::Apologised { .. } => self.apologised += 1,
            _ => {}
        }
    }

    /// The errors of an order that was delivered.
    fn of_goods(&self, order: &Order) -> Vec<String> {
        let mut wrong = self.of_any();
        let mut unless = |fine: bool, problem: &str| {
            if !fine {
                wrong.push(problem.to_string());
            }
        };
        let mut packed = self.packed.clone();
        packed.sort_unstable();
        let mut wanted: Vec<&str> = order.items.iter().map(|item| item.sku.as_str()).collect();
        wanted.sort_unstable();
        unless(self.charged == [order.cents()], "delivered, but not charged once for what it costs");
        unless(self.refunded.is_empty(), "delivered, and the money was given back");
        unless((self.reserved, self.released) == (1, 0), "delivered from goods that were not reserved");
        unless(packed == wanted, "the items were not packed once each");
        unless((self.shipped, self.handed_over) == (1, 1), "not shipped and handed over once");
        unless(self.invoiced == [order.cents()], "not billed once");
        unless(self.apologised == 0, "delivered, and an apology was sent");
        wrong
    }

    /// The errors of an order that was undone.
    fn of_apology(&self) -> Vec<String> {
        let mut wrong = self.of_any();
        let mut unless = |fine: bool, problem: &str| {
            if !fine {
                wrong.push(problem.to_string());
            }
        };
        unless(self.refunded == self.charged, "undone, but the money was not given back once");
        unless(self.released == self.reserved, "undone, but the goods were not released once");
        unless(self.shipped + self.handed_over == 0, "undone, and goods were sent");
        unless(self.invoiced.is_empty(), "undone, and a bill was sent");
        unless(self.apologised == 1, "undone, but the customer was not told once");
        wrong
    }

    /// The errors of an order that was cancelled from outside: its goods and its money are given back, or it was delivered.
    fn of_cancellation(&self) -> Vec<String> {
        let mut wrong = self.of_any();
        let is_delivered = self.handed_over == 1 && self.refunded.is_empty() && self.released == 0;
        let is_undone = self.refunded == self.charged && self.released == self.reserved;
        if !is_delivered && !is_undone {
            wrong.push("cancelled, but money and goods were not given back once".to_string());
        }
        wrong
    }

    fn of_any(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.placed != 1 {
            wrong.push(format!("placed {} times", self.placed));
        }
        if self.charged.len() > 1 {
            wrong.push(format!("charged {} times", self.charged.len()));
        }
        wrong
    }
}

#[cfg(test)]
mod tests;
