//! The whole content as text, for comparison with another store, and damage to stored rows, for tests.

use crate::MemoryProvider;
use crate::state::State;
use outlast_provider::DeadLetter;

impl MemoryProvider {
    /// One line for each row, sorted. A store with the same content prints the same lines. Lock tokens are random and left
    /// out.
    pub fn dump(&self) -> Vec<String> {
        let state = self.state();
        let mut lines = Vec::new();
        dump_instances(&state, &mut lines);
        dump_queues(&state, &mut lines);
        dump_kv(&state, &mut lines);
        for letter in state.dead_letters.values() {
            let (queue, instance) = (letter.queue.as_str(), letter.instance_id.as_deref().unwrap_or(""));
            lines.push(format!("dead {queue} {instance} {} {}", letter.attempt_count, letter.work_item));
        }
        lines.sort();
        lines
    }

    /// The time at which the next message, activity or session that cannot be fetched yet becomes available.
    pub fn next_due_ms(&self) -> Option<u64> {
        let state = self.state();
        state.next_due(self.clock.now_ms())
    }

    /// Whether a visible message waits for the instance.
    pub fn has_visible_messages(&self, instance: &str) -> bool {
        let state = self.state();
        !state.messages.visible(instance, self.clock.now_ms()).is_empty()
    }

    /// Makes every stored event of the instance undecodable.
    pub fn corrupt_history(&self, instance: &str) {
        let mut state = self.state();
        let events = state.history.iter_mut().filter(|((id, _), _)| id == instance);
        events.flat_map(|(_, events)| events.values_mut()).for_each(|text| *text = DAMAGED.to_string());
    }

    /// Makes every waiting message of the instance undecodable.
    pub fn corrupt_messages(&self, instance: &str) {
        let mut state = self.state();
        for ordinal in state.messages.of_instance(instance, |_| true) {
            state.messages.update(ordinal, |message| message.text = DAMAGED.to_string());
        }
    }

    /// Makes every waiting activity of the instance undecodable.
    pub fn corrupt_activities(&self, instance: &str) {
        let mut state = self.state();
        let rows = state.activities.rows.values_mut().filter(|activity| activity.instance == instance);
        rows.for_each(|activity| activity.text = DAMAGED.to_string());
    }

    /// Stores a dead letter.
    pub fn write_dead_letter(&self, letter: DeadLetter) {
        self.state().bury(letter);
    }

    /// The highest delivery count among the instance's waiting messages.
    pub fn max_attempt_count(&self, instance: &str) -> u32 {
        let state = self.state();
        let messages = state.messages.iter().filter(|message| message.instance == instance);
        messages.map(|message| message.attempts).max().unwrap_or(0)
    }
}

const DAMAGED: &str = "NOT_VALID_JSON{{{";

fn dump_instances(state: &State, lines: &mut Vec<String>) {
    for (id, row) in &state.instances {
        lines.push(format!(
            "instance {id} {} {} {} {:?} {:?} {} {} {}",
            row.orchestration_name,
            row.orchestration_version,
            row.current_execution_id,
            row.parent_instance_id,
            row.custom_status,
            row.custom_status_version,
            row.created_at,
            row.updated_at
        ));
    }
    for (id, executions) in &state.executions {
        for (execution_id, row) in executions {
            let pinned = row.pinned.as_ref().map(ToString::to_string);
            lines.push(format!(
                "execution {id} {execution_id} {} {:?} {} {:?} {pinned:?}",
                row.status, row.output, row.started_at, row.completed_at
            ));
        }
    }
    for ((id, execution_id), events) in &state.history {
        for (event_id, text) in events {
            lines.push(format!("history {id} {execution_id} {event_id:05} {text}"));
        }
    }
}

fn dump_queues(state: &State, lines: &mut Vec<String>) {
    for row in state.messages.iter() {
        lines.push(format!(
            "message {} {} {} {} {} {} {}",
            row.instance,
            row.available_at,
            row.visible_at,
            row.fetch_at,
            row.token.is_some(),
            row.attempts,
            row.text
        ));
    }
    for (id, held) in &state.holds {
        let hold = &held.hold;
        lines.push(format!("hold {id} {} {:?} {:?} {}", hold.kind, hold.actor, hold.reason, held.held_at_ms));
    }
    for (id, lease) in &state.leases {
        lines.push(format!("lease {id} {}", lease.locked_until));
    }
    for row in state.activities.rows.values() {
        lines.push(format!(
            "work {} {} {} {} {} {} {} {} {:?} {:?} {:?} {}",
            row.instance,
            row.execution_id,
            row.activity_id,
            row.visible_at,
            row.token.is_some(),
            row.locked_until,
            row.attempts,
            row.notes.failures,
            row.notes.last_error,
            row.session_id,
            row.tag,
            row.text
        ));
    }
    for (id, session) in &state.sessions {
        lines.push(format!(
            "session {id} {} {} {}",
            session.owner, session.locked_until, session.last_activity_at
        ));
    }
}

fn dump_kv(state: &State, lines: &mut Vec<String>) {
    for (id, values) in &state.kv_store {
        for (key, stored) in values {
            lines.push(format!("kv {id} {key:?} {:?} {}", stored.value, stored.last_updated_at_ms));
        }
    }
    for (id, changes) in &state.kv_delta {
        for (key, change) in changes {
            lines.push(format!("kv-delta {id} {key:?} {:?} {}", change.value, change.last_updated_at_ms));
        }
    }
}
