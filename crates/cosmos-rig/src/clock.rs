//! The clock of the emulated account: the source of `_ts` and of expiry.
//!
//! The emulator stamps documents with the machine's clock and offers no other. The rig remembers the time of each write
//! by its ETag and corrects `_ts` in every response that shows the document.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use outlast_model::wall_clock_ms;
use serde_json::Value;

pub(crate) struct Clock {
    state: Mutex<State>,
}

struct State {
    time: Time,
    /// `_ts` of the documents that were written while the clock differed from the machine's, by ETag.
    written: HashMap<String, u64>,
}

#[derive(Clone, Copy)]
enum Time {
    /// The machine's clock.
    Machine,
    /// The machine's clock and a number of milliseconds.
    Shifted(i64),
    /// A time that only the test moves.
    Stopped(u64),
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State { time: Time::Machine, written: HashMap::new() }) }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.lock().time.now_ms()
    }

    /// Stops the clock at a time.
    pub(crate) fn stop_at(&self, now_ms: u64) {
        self.lock().time = Time::Stopped(now_ms);
    }

    /// Lets the clock run with the machine's, with a difference.
    pub(crate) fn shift(&self, by_ms: i64) {
        self.lock().time = if by_ms == 0 { Time::Machine } else { Time::Shifted(by_ms) };
    }

    pub(crate) fn advance(&self, by: Duration) {
        let mut state = self.lock();
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        state.time = match state.time {
            Time::Machine => Time::Shifted(by),
            Time::Shifted(shift) => Time::Shifted(shift.saturating_add(by)),
            Time::Stopped(now_ms) => Time::Stopped(now_ms.saturating_add_signed(by)),
        };
    }

    /// Whether `_ts` may differ from the value that the emulator stored.
    pub(crate) fn is_altered(&self) -> bool {
        let state = self.lock();
        !matches!(state.time, Time::Machine) || !state.written.is_empty()
    }

    /// Notes the time of writes that were just executed.
    pub(crate) fn wrote<'a>(&self, etags: impl Iterator<Item = &'a str>) {
        let mut state = self.lock();
        if matches!(state.time, Time::Machine) {
            return;
        }
        let ts = state.time.now_ms() / 1000;
        state.written.extend(etags.map(|etag| (etag.to_string(), ts)));
    }

    /// Corrects `_ts` of every document in a response. Returns whether anything changed.
    pub(crate) fn correct(&self, json: &mut Value) -> bool {
        correct(json, &self.lock().written)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Time {
    fn now_ms(self) -> u64 {
        match self {
            Self::Machine => wall_clock_ms(),
            Self::Shifted(by) => wall_clock_ms().saturating_add_signed(by),
            Self::Stopped(now_ms) => now_ms,
        }
    }
}

fn correct(json: &mut Value, written: &HashMap<String, u64>) -> bool {
    let mut changed = false;
    match json {
        Value::Array(items) => {
            for item in items {
                changed |= correct(item, written);
            }
        }
        Value::Object(fields) => {
            let ts = fields.get("_etag").and_then(Value::as_str).and_then(|etag| written.get(etag)).copied();
            if let (Some(ts), Some(shown)) = (ts, fields.get_mut("_ts")) {
                *shown = ts.into();
                changed = true;
            }
            for field in fields.values_mut() {
                changed |= correct(field, written);
            }
        }
        _ => {}
    }
    changed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_documents_written_under_the_set_clock_are_corrected() {
        let clock = Clock::new();
        clock.wrote(["\"before\""].into_iter());
        clock.stop_at(5_000_999);
        clock.wrote(["\"a\""].into_iter());
        clock.advance(Duration::from_secs(7));
        clock.wrote(["\"b\""].into_iter());
        let document = |etag: &str| json!({ "_etag": format!("\"{etag}\""), "_ts": 1 });
        let mut page =
            json!({ "Documents": [document("before"), document("a"), { "payload": document("b") }] });
        assert!(clock.correct(&mut page));
        let shown = |pointer: &str| page.pointer(pointer).and_then(Value::as_u64);
        assert_eq!(
            [shown("/Documents/0/_ts"), shown("/Documents/1/_ts"), shown("/Documents/2/payload/_ts")],
            [Some(1), Some(5000), Some(5007)]
        );
    }

    #[test]
    fn the_clock_can_be_stopped_moved_and_let_go() {
        let clock = Clock::new();
        assert!(!clock.is_altered());
        clock.stop_at(10);
        clock.advance(Duration::from_millis(5));
        assert_eq!(clock.now_ms(), 15);
        clock.shift(-3_600_000);
        assert!(clock.now_ms() < wall_clock_ms() - 3_000_000);
        clock.shift(0);
        assert!(!clock.is_altered() && clock.now_ms() >= 1_000_000_000_000);
    }
}
