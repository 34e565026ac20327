//! Explains an instance to people: pure functions from its history, its queue rows and its dead letters to texts and values that tools
//! show.
//!
//! | function | answers |
//! |---|---|
//! | [`diagnose`] | why does the instance not go on? One sentence for every state of an instance |
//! | [`timeline`] | when did which operation run? Spans with folded retries, idle gaps, lanes and bins |
//! | [`state_at`] | which keys, custom status and open operations were there after an event? |
//! | [`diff`] | where do two histories part? |
//! | [`waits`], [`open_operations`], [`turn_state`] | for which operations does the instance wait, and how far are they? |
//!
//! No function returns a payload, except for [`state_at`], whose keys and custom status are values of the user.

mod count;
mod diff;
mod open;
mod operations;
mod payload;
mod state;
mod steps;
mod time;
mod timeline;
mod wait;
mod why;

pub use count::{counted, grouped, times};
pub use diff::{Comparison, Diff, DiffRow, EventLine, diff};
pub use open::{OpenOperation, Operation, open_operations};
pub use payload::is_without_payload;
pub use state::{State, state_at};
pub use time::{moment, span};
pub use timeline::{Gap, Span, SpanKind, SpanStatus, Timeline, TimelineOptions, Try, timeline};
pub use wait::{Progress, TurnState, Wait, turn_state, waits};
pub use why::{Diagnosis, Evidence, Rule, Undecodable, diagnose};
