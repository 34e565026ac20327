//! The answers of the server. Handlers of the API send them as JSON, pages render them with templates.

mod events;
mod held;
mod history;
mod instance;
mod nodes;
mod pending;
mod queue;
mod series;
mod state;
mod stats;
mod store;
mod time;
mod timeline;
mod tree;
mod waits;
mod why;

pub(crate) use events::{EventPage, EventQuery, StoredEvents, events, payloads, stored_events};
pub(crate) use held::{HeldPage, Hold, PausedOrchestrations, held, hold, paused_orchestrations};
pub(crate) use history::{History, execution, history, info};
pub(crate) use instance::{
    Detail, Instance, InstancePage, ListQuery, detail, detail_with_waits, list, stored_status,
};
pub(crate) use nodes::{LeaseView, NodeView, Nodes, TagsView, nodes};
pub(crate) use pending::{Pending, pending};
pub(crate) use queue::{QueueMessage, QueueMessages, TagView, queue_messages, queue_of};
pub(crate) use series::{Sample, Samples, Series, series};
pub(crate) use state::{StateView, state};
pub(crate) use stats::{Stats, stats};
pub(crate) use store::{
    AuditPage, Counts, DeadLetterView, DeadLetters, Queues, System, audit, counts, dead_letter, dead_letters,
    known_system, queues, queues_and_nodes, system,
};
pub(crate) use time::rfc3339;
pub(crate) use timeline::{TimelineView, schema as timeline_schema, timeline};
pub(crate) use tree::{ExecutionDetail, Executions, Tree, execution_detail, executions, tree};
pub(crate) use why::{Why, why};
