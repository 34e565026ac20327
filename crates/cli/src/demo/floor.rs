//! The simulated users: customers who place orders, an approver, and an observer.
//!
//! They are three futures of one task, and access the orders only through the client, as any other process would.

use super::board::{Board, status};
use super::books::Books;
use super::entry::Entry;
use super::order::{AWAITS_APPROVAL, Approval, order};
use super::screen::Screen;
use super::stage::{ANSWER_MS, Stage};
use crate::failure::Failure;
use outlast::prelude::{Client, InstanceError};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval, sleep};

/// The most open orders at the same time.
const MOST_OPEN: usize = 64;
/// The time between two orders.
const BETWEEN_ORDERS_MS: u64 = 160;
/// The interval at which the board is updated.
const LOOK: Duration = Duration::from_millis(100);
/// While a visitor is present, the ledger is counted after this number of looks.
const LOOKS_PER_COUNT: u64 = 5;

/// The simulated users and their state.
pub(super) struct Floor<'a> {
    pub(super) client: &'a Client,
    pub(super) books: &'a Books,
    pub(super) stage: &'a Stage,
    pub(super) board: RefCell<Board>,
}

impl Floor<'_> {
    /// Runs until every order of the batch has been placed and has ended.
    pub(super) async fn run(&self, screen: &mut Screen) -> Result<(), Failure> {
        tokio::try_join!(self.place_orders(), self.watch(screen)).map(|_| ())
    }

    /// Places the orders that were not placed before.
    async fn place_orders(&self) -> Result<(), Failure> {
        let (batch, waiting) = {
            let board = self.board.borrow();
            let is_new = |id: &String| !board.open.contains_key(id) && !board.ended.contains_key(id);
            (board.batch, board.batch.ids().filter(is_new).collect::<Vec<_>>())
        };
        for id in waiting {
            sleep(Duration::from_millis(batch.ms(BETWEEN_ORDERS_MS))).await;
            while self.board.borrow().open.len() >= MOST_OPEN {
                sleep(LOOK).await;
            }
            let mut new = batch.order(&id);
            if self.stage.keeps_for_visitor(&new) {
                // Longer than the visitor's time: then the shop answers.
                new.approval_ms = 2 * ANSWER_MS;
            }
            // A killed process may have placed the order without a line in the ledger.
            order::start(self.client, new).id(&id).or_existing().await?;
            self.books.note(Entry::Placed { order: id.clone() }).await?;
            self.board.borrow_mut().placed(&id);
        }
        Ok(())
    }

    async fn watch(&self, screen: &mut Screen) -> Result<(), Failure> {
        let mut approver = Approver::default();
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut count = 0;
        while !self.board.borrow().is_done() {
            looks.tick().await;
            let open: Vec<String> = self.board.borrow().open.keys().cloned().collect();
            for id in open {
                let seen = status(self.client, &id).await?;
                let news = self.board.borrow_mut().saw(&id, seen);
                if let Some(news) = news {
                    self.stage.hears(&news);
                    screen.ended(&news, &self.board.borrow())?;
                }
            }
            approver.send_due_answers(self).await?;
            self.stage.shows(&self.board.borrow());
            count += 1;
            if count % LOOKS_PER_COUNT == 0 && self.stage.has_visitor() {
                self.stage.counts(&self.books.tally().await?);
            }
            screen.show(&self.board.borrow())?;
        }
        Ok(())
    }
}

/// The approver of expensive orders: answers an order after a while with yes, sometimes with no, and sometimes not at all.
#[derive(Default)]
struct Approver {
    /// The time since which each unanswered order waits.
    seen: BTreeMap<String, u64>,
    answered: BTreeSet<String>,
}

impl Approver {
    async fn send_due_answers(&mut self, floor: &Floor<'_>) -> Result<(), Failure> {
        let answers = self.answers(&floor.board.borrow(), floor.stage);
        for (id, answer) in answers {
            match order::handle(floor.client, id).send(answer).await {
                // The order did not wait any longer.
                Ok(()) | Err(InstanceError::Ended { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The answers that are due now.
    fn answers(&mut self, board: &Board, stage: &Stage) -> Vec<(String, Approval)> {
        let mut answers = Vec::new();
        for (id, open) in &board.open {
            if open.step != AWAITS_APPROVAL || self.answered.contains(id) {
                continue;
            }
            match stage.visitor_of(id) {
                Some(true) => continue,
                // The visitor has gone, or had enough time.
                Some(false) => {
                    self.answered.insert(id.clone());
                    answers.push((id.clone(), Approval::Granted));
                    continue;
                }
                None => {}
            }
            let mut dice = board.batch.dice(&format!("approval/{id}"));
            let answer = match dice.below(100) {
                0..70 => Approval::Granted,
                70..85 => Approval::Refused { reason: "the credit limit is reached".to_string() },
                _ => continue, // Out for lunch.
            };
            let looks = self.seen.entry(id.clone()).or_default();
            *looks += 1;
            let enough = board.batch.ms(2 + dice.below(12));
            if *looks > enough {
                self.answered.insert(id.clone());
                answers.push((id.clone(), answer));
            }
        }
        answers
    }
}
