//! The state of a parent and its children.

use super::bag::{Bag, Link, Message};
use super::{LAST_EXECUTION, NEVER_STARTED, PARENT};
use crate::model::search::ForbiddenEvents;

pub(super) const INSTANCES: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Life {
    NotThere,
    Runs { execution: u8, link: Link },
    Continued { execution: u8, link: Link },
    Ended,
}

/// The parent's call of a child in its current execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Call {
    None,
    Waits(usize),
    Dropped,
    Answered,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::model) struct State {
    /// Whether children are cancelled however their parent ends.
    pub(super) closes_children: bool,
    pub(super) lives: [Life; INSTANCES],
    pub(super) queues: [Bag; INSTANCES],
    pub(super) call: Call,
    /// Outcomes recorded by each execution of the parent.
    pub(super) outcomes: [u8; LAST_EXECUTION as usize],
    /// Instances whose start was committed.
    pub(super) started: [bool; INSTANCES],
    /// Instances that must end because of how their parent ended, or because it dropped them.
    pub(super) must_end: [bool; INSTANCES],
    pub(super) detached: bool,
    pub(super) cancel_asked: bool,
    pub(super) copies_left: u8,
    pub(super) forbidden: ForbiddenEvents,
}

impl State {
    /// A start waits for the parent.
    pub(super) fn new(closes_children: bool, copies: u8) -> Self {
        let mut state = Self {
            closes_children,
            lives: [Life::NotThere; INSTANCES],
            queues: Default::default(),
            call: Call::None,
            outcomes: [0; LAST_EXECUTION as usize],
            started: [false; INSTANCES],
            must_end: [false; INSTANCES],
            detached: false,
            cancel_asked: false,
            copies_left: copies,
            forbidden: ForbiddenEvents::new(),
        };
        state.send(PARENT, Message::Start { link: None });
        state
    }

    pub(super) fn send(&mut self, to: usize, message: Message) {
        self.queues[to].put(message);
        self.started[to] |= matches!(message, Message::Start { .. });
    }

    pub(super) fn cancel(&mut self, child: usize) {
        if !self.started[child] {
            self.forbidden.insert(NEVER_STARTED);
        }
        self.send(child, Message::Cancel);
    }

    pub(super) fn answer(&mut self, link: Link, taken: bool) {
        if let Some(execution) = link {
            self.send(PARENT, Message::Answer { execution, taken });
        }
    }

    /// The batches that a turn may fetch. An ended instance drops every message, so for it only the whole queue is
    /// tried.
    pub(super) fn batches(&self, instance: usize) -> Vec<Bag> {
        match self.lives[instance] {
            Life::Ended => {
                Some(self.queues[instance]).filter(|queue| !queue.is_empty()).into_iter().collect()
            }
            _ => self.queues[instance].parts(),
        }
    }

    /// Whether an outcome for this execution's call of the child can still arrive.
    pub(super) fn is_owed(&self, child: usize, execution: u8) -> bool {
        let link = Some(execution);
        let runs = match self.lives[child] {
            Life::Runs { link: own, .. } => own == link,
            Life::Continued { .. } => self.queues[child].has(Message::Successor { link }),
            Life::NotThere | Life::Ended => false,
        };
        runs || self.queues[child].has(Message::Start { link })
            || [true, false]
                .iter()
                .any(|taken| self.queues[PARENT].has(Message::Answer { execution, taken: *taken }))
    }
}
