//! Damaged histories that are replayed against code: the replay ends with the first event that does not fit, or at the end.

use crate::choices::Choices;
use crate::corruption::program;
use outlast_model::{Event, WorkItem, json};
use outlast_provider::LoadedTurn;
use outlast_runtime::RuntimeOptions;
use outlast_runtime::check::{Build, Cause, Recorded, Turn};
use std::collections::HashMap;

/// The most events that are replayed: a position in them is a byte of the input.
const MOST_EVENTS: usize = 256;

/// The first line of the input changes the order and the numbers of the events; each further line is an event, or a message of the next
/// turn. No code panics, neither in the replay of the history nor in the turn that follows it.
pub fn replay_history(data: &[u8]) {
    let (changes, lines) = data.split_at(data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len()));
    let lines = String::from_utf8_lossy(lines);
    let mut history: Vec<Event> =
        lines.lines().filter_map(|line| json::decode_event(line).ok()).take(MOST_EVENTS).collect();
    let messages: Vec<WorkItem> =
        lines.lines().filter_map(|line| json::decode_work_item(line).ok()).take(MOST_EVENTS).collect();
    let choices = &mut Choices::new(changes);
    while !choices.is_empty() && !history.is_empty() {
        change(&mut history, choices);
    }
    let build = Build::new(program::orchestrations(), &RuntimeOptions::default());
    let first = history.first();
    let instance = first.map_or("i".to_string(), |event| event.instance_id.clone());
    let execution_id = first.map_or(1, |event| event.execution_id);
    let recorded = Recorded { instance: &instance, execution_id, history: &history, kv: HashMap::new() };
    let checked = recorded.check(&build, history.last().map(|event| event.event_id));
    if let Some(misfit) = checked.misfit {
        assert!(misfit.cause != Cause::Panics, "the programs do not panic: {misfit:?}");
    }
    let now_ms = history.last().map_or(0, |event| event.timestamp_ms);
    let turn = Turn { instance, execution_id, messages, now_ms };
    let loaded = LoadedTurn { history, kv_snapshot: HashMap::new(), history_error: None };
    let _ = build.run_again(&turn, loaded);
}

/// Changes the order of the events, or a number of one.
fn change(history: &mut Vec<Event>, choices: &mut Choices<'_>) {
    let (how, at) = (choices.below(8), choices.below(history.len()));
    match how {
        0 => drop(history.remove(at)),
        1 if history.len() < MOST_EVENTS => history.insert(at, history[at].clone()),
        2 => {
            let other = choices.below(history.len());
            history.swap(at, other);
        }
        3 => history[at].event_id = choices.number().cast_unsigned(),
        4 => history[at].source_event_id = choices.flag().then(|| choices.number().cast_unsigned()),
        5 => history[at].execution_id = choices.number().cast_unsigned(),
        6 => history[at].timestamp_ms = choices.number().cast_unsigned(),
        _ => history.truncate(at + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_of_the_corpus_replay_whole_without_changes() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/replay_history");
        let build = Build::new(program::orchestrations(), &RuntimeOptions::default());
        for name in ["seed-chain", "seed-race", "seed-queue"] {
            let text = std::fs::read_to_string(format!("{folder}/{name}")).unwrap();
            let history: Vec<Event> = text.lines().filter_map(|line| json::decode_event(line).ok()).collect();
            assert!(history.len() > 3, "{name}");
            let recorded = Recorded { instance: "i", execution_id: 1, history: &history, kv: HashMap::new() };
            assert_eq!(recorded.check(&build, None).misfit, None, "{name}");
        }
    }
}
