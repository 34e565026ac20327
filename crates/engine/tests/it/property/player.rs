//! Simulates clients, workers and clocks by a schedule.

use crate::kit::*;
use outlast_engine::{KvValue, SystemCall};
use outlast_model::{Event, EventKind, ResetPlan, WorkItem};
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::BTreeMap;

/// The outcome of a child, which its input decides.
pub(crate) fn child_outcome(id: u64, input: &str) -> Message {
    match fate(input) {
        1 => child_fails(id, &format!("e{input}")),
        _ => child_done(id, &format!("r{input}")),
    }
}

fn fate(input: &str) -> u64 {
    input.bytes().map(u64::from).sum::<u64>() % 4
}

/// The messages that arrive next, as indexes that are reduced to the number of waiting messages.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    picks: Vec<u16>,
    /// Turns after which a cancellation is sent.
    cancel_after: Option<usize>,
    /// Whether messages of no use arrive too, and called-off activities answer all the same.
    noise: bool,
}

pub(crate) fn any_schedule() -> impl Strategy<Value = Schedule> {
    let cancel_after = prop_oneof![5 => Just(None), 1 => (0..8usize).prop_map(Some)];
    (prop::collection::vec(any::<u16>(), 4..40), cancel_after, any::<bool>())
        .prop_map(|(picks, cancel_after, noise)| Schedule { picks, cancel_after, noise })
}

pub(crate) fn calm_schedule() -> impl Strategy<Value = Schedule> {
    prop::collection::vec(any::<u16>(), 4..40).prop_map(|picks| Schedule {
        picks,
        cancel_after: None,
        noise: false,
    })
}

pub(crate) struct Player {
    pub(crate) driver: InstanceDriver,
    /// Messages on their way.
    waiting: Vec<WorkItem>,
    /// The messages of each turn, by execution.
    pub(crate) batches: Vec<(u64, Vec<WorkItem>)>,
    /// Executions that have ended, with the turns' ends.
    past: Vec<Vec<Event>>,
    ends: Vec<(u64, usize)>,
    keys: BTreeMap<u64, BTreeMap<String, KvValue>>,
    work: Vec<String>,
    sent: u64,
}

const MOST_TURNS: usize = 300;

impl Player {
    pub(crate) fn new(driver: InstanceDriver) -> Self {
        Self {
            driver,
            waiting: Vec::new(),
            batches: Vec::new(),
            past: Vec::new(),
            ends: Vec::new(),
            keys: BTreeMap::new(),
            work: Vec::new(),
            sent: 0,
        }
    }

    /// An instance in the middle of its life, with the work that it waits for.
    pub(crate) fn resumed(driver: InstanceDriver, plan: &ResetPlan) -> Self {
        let mut player = Self::new(driver);
        let own = plan.first_messages.iter().chain(&plan.begin.orchestrator_items);
        player.waiting = own.filter(|item| item.target_instance() == plan.target).cloned().collect();
        for item in &plan.begin.worker_items {
            player.carry_out(item);
        }
        player
    }

    pub(crate) fn play(&mut self, schedule: &Schedule) {
        let mut picks = schedule.picks.iter().cycle().map(|pick| usize::from(*pick));
        let mut pick = move |most: usize| picks.next().unwrap_or(0) % most.max(1);
        self.turn(Vec::new(), schedule.noise);
        for turn in 0..MOST_TURNS {
            if self.is_over() {
                return;
            }
            if self.waiting.is_empty() {
                self.send_awaited_messages();
            }
            let mut batch = Vec::new();
            for _ in 0..=pick(4) {
                if !self.waiting.is_empty() {
                    let next = pick(self.waiting.len());
                    batch.push(self.waiting.remove(next));
                }
            }
            if schedule.noise && pick(5) == 0 {
                batch.push(raise(&format!("s{}", pick(3)), "noise").address("i", 0));
                batch.push(enqueue(&format!("q{}", pick(3)), &format!("noise{turn}")).address("i", 0));
            }
            if schedule.cancel_after == Some(turn) {
                batch.push(cancel("enough").address("i", 0));
            }
            self.turn(batch, schedule.noise);
        }
    }

    /// The batches of another player, changed.
    pub(crate) fn repeat(
        &mut self,
        batches: &[(u64, Vec<WorkItem>)],
        change: impl Fn(&[WorkItem], &[WorkItem]) -> Vec<WorkItem>,
    ) {
        let mut earlier: Vec<WorkItem> = Vec::new();
        for (_, batch) in batches {
            let changed = change(batch, &earlier);
            earlier.extend(batch.iter().cloned());
            self.turn(changed, false);
        }
    }

    fn is_over(&self) -> bool {
        self.driver.has_ended() && !self.driver.has_next_execution()
    }

    fn turn(&mut self, batch: Vec<WorkItem>, noise: bool) {
        if self.driver.has_next_execution() {
            self.past.push(self.driver.history.clone());
            self.driver.next_execution();
        }
        let execution_id = self.driver.execution_id;
        self.keys.entry(execution_id).or_insert_with(|| self.driver.kv.clone());
        self.batches.push((execution_id, batch.clone()));
        let commit = self.driver.give_items(batch).commit;
        self.ends.push((execution_id, self.driver.history.len()));
        for item in commit.worker_items.iter().chain(&commit.orchestrator_items) {
            self.carry_out(item);
        }
        for event in &commit.history_delta {
            if let EventKind::QueueSubscribed { name } = &event.kind
                && name.starts_with("own")
            {
                self.waiting.push(enqueue(name, &format!("m{name}")).address("i", 0));
            }
        }
        if !noise {
            let called_off = |item: &WorkItem| match item {
                WorkItem::ActivityCompleted { execution_id: of, id, .. }
                | WorkItem::ActivityFailed { execution_id: of, id, .. } => {
                    *of == execution_id
                        && commit.cancelled_activities.iter().any(|activity| activity.activity_id == *id)
                }
                _ => false,
            };
            self.waiting.retain(|item| !called_off(item));
        }
    }

    /// The outcome of a work item. Its input decides the outcome, so that every schedule has the same one.
    fn carry_out(&mut self, item: &WorkItem) {
        match item {
            WorkItem::ActivityExecute { execution_id, id, name, input, .. } => {
                self.work.push(format!("{name} {input}"));
                let outcome = match (SystemCall::answer(name, 7, || 7), fate(input)) {
                    (Some(answer), _) => done(*id, &answer),
                    (None, 0) => fails(*id, &format!("e{input}")),
                    (None, _) => done(*id, &format!("r{input}")),
                };
                self.waiting.push(outcome.address(&self.driver.instance, *execution_id));
            }
            WorkItem::TimerFired { .. } => {
                self.work.push("timer".to_string());
                self.waiting.push(item.clone());
            }
            WorkItem::StartOrchestration { orchestration, input, parent_id: Some(id), .. } => {
                self.work.push(format!("{orchestration} {input}"));
                let outcome = child_outcome(*id, input);
                self.waiting.push(outcome.address(&self.driver.instance, self.driver.execution_id));
            }
            WorkItem::StartOrchestration { orchestration, input, .. } => {
                self.work.push(format!("{orchestration} {input}"));
            }
            _ => {}
        }
    }

    /// Sends an event and a queue message to every wait of the program. Used when no message is waiting.
    fn send_awaited_messages(&mut self) {
        for name in 0..3 {
            self.sent += 1;
            self.waiting.push(raise(&format!("s{name}"), &format!("event{}", self.sent)).address("i", 0));
            self.waiting.push(enqueue(&format!("q{name}"), &format!("message{}", self.sent)).address("i", 0));
        }
    }

    // -- results ---------------------------------------------------------------------------------------------------

    /// All recorded events.
    pub(crate) fn all_events(&self) -> Vec<Event> {
        self.past.iter().flatten().chain(&self.driver.history).cloned().collect()
    }

    /// How it ended.
    pub(crate) fn outcome(&self) -> Option<String> {
        self.driver.history.iter().find(|event| event.is_terminal()).map(|event| {
            let line = event_line(event);
            line.split_once(' ').map(|(_, rest)| rest.to_string()).unwrap_or_default()
        })
    }

    /// The work items that the program sent, sorted.
    pub(crate) fn work(&self) -> Vec<String> {
        let mut work = self.work.clone();
        work.sort();
        work
    }

    /// The history after one of the turns, if it had not ended then.
    pub(crate) fn longest_unended(&self, place: Index) -> Option<Vec<Event>> {
        let (execution_id, end) = *place.get(&self.ends);
        let history = self.past.iter().chain([&self.driver.history]);
        let history = history.into_iter().find(|history| history[0].execution_id == execution_id)?;
        let history = history[..end].to_vec();
        Some(history).filter(|history| !history.iter().any(Event::is_terminal))
    }

    pub(crate) fn keys_before(&self, execution_id: u64) -> BTreeMap<String, KvValue> {
        self.keys.get(&execution_id).cloned().unwrap_or_default()
    }
}
