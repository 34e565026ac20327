//! Generated programs under generated schedules (ruling 15).
//!
//! `OUTLAST_ENGINE_CASES` sets how many cases each property tries; 512 without it. `OUTLAST_ENGINE_SHRINKS` sets how many
//! smaller cases are tried when one fails; set it to 0 to skip that.

mod player;
mod programs;

use crate::kit::*;
use outlast_engine::reset::{Branch, ChildState, Cut};
use outlast_engine::{KvValue, new_stamp};
use outlast_model::{AuditEntry, Event, EventKind, ResetKey, WorkItem};
use player::{Player, Schedule};
use programs::{Step, any_program, code, race_free_program};
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence};
use std::collections::BTreeMap;

fn config() -> Config {
    Config {
        cases: setting("OUTLAST_ENGINE_CASES", 512),
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        max_shrink_iters: setting("OUTLAST_ENGINE_SHRINKS", 2_000),
        ..Config::default()
    }
}

fn setting(name: &str, default: u32) -> u32 {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(default)
}

fn stamps() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => Just(new_stamp(false)),
        1 => Just(new_stamp(true)),
        1 => Just("0.1.30".to_string()),
    ]
}

fn driver(program: &[Step], stamp: &str) -> InstanceDriver {
    InstanceDriver::new(code(program.to_vec())).stamped(stamp)
}

/// Plays until the instance ends; the driver runs every turn warm and cold.
fn play(program: &[Step], stamp: &str, schedule: &Schedule) -> Player {
    let mut player = Player::new(driver(program, stamp));
    player.play(schedule);
    player
}

proptest! {
    #![proptest_config(config())]

    /// Warm equals cold at every turn, whatever races; and code that did not change never disagrees with its history.
    #[test]
    fn live_equals_replay(program in any_program(), stamp in stamps(), schedule in player::any_schedule()) {
        let player = play(&program, &stamp, &schedule);
        for event in player.all_events() {
            if let EventKind::OrchestrationFailed { details } = &event.kind {
                prop_assert_eq!(details.category(), "application", "{}", details.display_message());
            }
        }
    }

    /// Without races, how messages are ordered and split over turns changes neither outcome nor work.
    #[test]
    fn splitting_batches_changes_no_result(
        program in race_free_program(),
        stamp in stamps(),
        one in player::calm_schedule(),
        other in player::calm_schedule(),
    ) {
        let one = play(&program, &stamp, &one);
        let other = play(&program, &stamp, &other);
        prop_assert!(one.driver.has_ended(), "it must come to an end");
        prop_assert_eq!(one.outcome(), other.outcome());
        prop_assert_eq!(one.work(), other.work());
    }

    /// Outcomes that are delivered again, in the same batch or later, change nothing.
    #[test]
    fn duplicated_messages_change_no_result(program in any_program(), stamp in stamps(), schedule in player::any_schedule()) {
        let once = play(&program, &stamp, &schedule);
        let mut twice = Player::new(driver(&program, &stamp));
        twice.repeat(&once.batches, |batch, earlier| {
            let outcomes = batch.iter().filter(|item| is_outcome(item)).cloned();
            let again: Vec<WorkItem> = outcomes.chain(earlier.iter().filter(|item| is_outcome(item)).cloned()).collect();
            batch.iter().cloned().chain(again).collect()
        });
        prop_assert_eq!(once.all_events(), twice.all_events());
    }

    /// A changed history fails, and the message names the stored event and the decision of the code.
    #[test]
    fn changed_history_fails_replay(
        program in any_program(),
        stamp in stamps(),
        schedule in player::any_schedule(),
        place in any::<prop::sample::Index>(),
    ) {
        let player = play(&program, &stamp, &schedule);
        let Some(history) = player.longest_unended(place) else { return Ok(()) };
        let decisions: Vec<usize> = (0..history.len()).filter(|at| words(&history[*at]).is_some()).collect();
        if decisions.is_empty() {
            return Ok(());
        }
        let at = decisions[place.index(decisions.len())];
        let was = words(&history[at]).unwrap_or_default();
        let mut changed = history.clone();
        changed[at].kind = EventKind::ActivityScheduled {
            name: "Changed".to_string(),
            input: String::new(),
            session_id: None,
            tag: None,
        };
        let mut driver = driver(&program, &stamp).stored(changed);
        driver.execution_id = history[0].execution_id;
        driver.kv = player.keys_before(history[0].execution_id);
        driver.give([]);
        let error = driver.error();
        prop_assert!(error.contains("activity 'Changed'"), "{error}");
        prop_assert!(error.contains(&was), "{error} lacks {was}");
        prop_assert!(error.contains(&format!("event {} of instance 'i'", history[at].event_id)), "{error}");
    }
}

proptest! {
    #![proptest_config(config())]

    /// The code goes on from every event that a history can be cut after, and does not disagree with the copied events.
    #[test]
    fn code_goes_on_from_every_cut(
        program in any_program(),
        stamp in stamps(),
        schedule in player::any_schedule(),
        place in any::<prop::sample::Index>(),
        later in player::any_schedule(),
    ) {
        let player = play(&program, &stamp, &schedule);
        let branch = Branch::Reset { cancel_children: true };
        let Some(resumed) = resume(&player, &program, place, branch, &later) else { return Ok(()) };
        for event in resumed.all_events() {
            if let EventKind::OrchestrationFailed { details } = &event.kind {
                prop_assert_eq!(details.category(), "application", "{}", details.display_message());
            }
        }
    }

    /// Without races, a fork has the outcome of its source, wherever the history is cut.
    #[test]
    fn fork_has_the_outcome_of_its_source(
        program in race_free_program(),
        stamp in stamps(),
        schedule in player::calm_schedule(),
        place in any::<prop::sample::Index>(),
        later in player::calm_schedule(),
    ) {
        let player = play(&program, &stamp, &schedule);
        let Some(fork) = resume(&player, &program, place, Branch::Fork { id: "fork" }, &later) else {
            return Ok(());
        };
        prop_assert!(fork.driver.has_ended(), "it must come to an end");
        prop_assert_eq!(player.outcome(), fork.outcome());
    }
}

/// Cuts the last history of a player and plays on. `None` if the history cannot be cut there.
fn resume(
    player: &Player,
    program: &[Step],
    place: prop::sample::Index,
    branch: Branch<'_>,
    schedule: &Schedule,
) -> Option<Player> {
    let history = &player.driver.history;
    let cut = Cut::at(history, history[place.index(history.len())].event_id).ok()?;
    let mut states = BTreeMap::new();
    for child in cut.children().iter().filter(|child| child.is_open()) {
        let scheduled = history.iter().find(|event| event.event_id == child.event_id)?;
        let EventKind::SubOrchestrationScheduled { input, .. } = &scheduled.kind else { return None };
        let state = match player::child_outcome(child.event_id, input).address("i", 1) {
            WorkItem::SubOrchCompleted { result, .. } => ChildState::Completed(result),
            WorkItem::SubOrchFailed { details, .. } => ChildState::Failed(details),
            _ => ChildState::Running,
        };
        states.insert(child.event_id, state);
    }
    let keys = player.keys_before(history[0].execution_id);
    let (plan, _) = cut.plan(branch, &keys, &states, AuditEntry::default(), 0).ok()?;
    let mut driver = driver(program, "").stored(plan.begin.history_delta.clone());
    driver.instance.clone_from(&plan.target);
    driver.execution_id = plan.begin.execution_id;
    let value = |key: &ResetKey| KvValue { value: key.value.clone(), updated_at_ms: key.last_updated_at_ms };
    driver.kv = plan.keys.iter().map(|(key, entry)| (key.clone(), value(entry))).collect();
    let mut resumed = Player::resumed(driver, &plan);
    resumed.play(schedule);
    Some(resumed)
}

fn is_outcome(item: &WorkItem) -> bool {
    !matches!(
        item,
        WorkItem::ExternalRaised { .. } | WorkItem::QueueMessage { .. } | WorkItem::CancelInstance { .. }
    )
}

/// How a message names a decision; `None` for events that are none.
fn words(event: &Event) -> Option<String> {
    match &event.kind {
        EventKind::ActivityScheduled { name, .. } => Some(format!("activity '{name}'")),
        EventKind::TimerCreated { .. } => Some("a timer".to_string()),
        EventKind::SubOrchestrationScheduled { name, .. } => Some(format!("a child orchestration '{name}'")),
        EventKind::OrchestrationChained { name, .. } => Some(format!("a detached orchestration '{name}'")),
        EventKind::ExternalSubscribed { name } => Some(format!("a wait for event '{name}'")),
        EventKind::QueueSubscribed { name } => Some(format!("a wait for a message of queue '{name}'")),
        EventKind::CustomStatusUpdated { .. } => Some("a custom status update".to_string()),
        EventKind::KeyValueSet { key, .. } => Some(format!("a write of key '{key}'")),
        EventKind::KeyValueCleared { key } => Some(format!("a removal of key '{key}'")),
        EventKind::KeyValuesCleared => Some("a removal of all keys".to_string()),
        _ => None,
    }
}
