//! The handlers of `/api/v1`, and the list of its routes.

pub(crate) mod cloudevents;
pub(crate) mod dead_letters;
pub(crate) mod held;
mod history;
mod instances;
mod keyed;
pub(crate) mod operate;
pub(crate) mod operations;
pub(crate) mod reset;
pub(crate) mod start;
mod store;
mod stream;

use crate::access::{Caller, Scope};
use crate::problem::{Code, Problem};
use crate::routes::{About, Param, Routes, Values};
use axum::http::Method;
use serde::Deserialize;
use std::future::ready;
pub(crate) use stream::StoreMarks;

/// The parameter with which a request asks for payloads.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct Asked {
    #[serde(default)]
    pub(crate) payloads: bool,
}

impl Asked {
    /// Whether payloads are shown. A request without the scope is refused, so that a null is never taken for data.
    pub(crate) fn granted(self, caller: &Caller) -> Result<bool, Problem> {
        match self.payloads && !caller.scopes.allow(Scope::Payloads) {
            true => Err(Problem::new(Code::SCOPE, "payloads=true needs a token with the scope payloads")),
            false => Ok(self.payloads),
        }
    }
}

const PAYLOADS: Param = Param("payloads", Values::Flag, "true shows payloads; needs the scope payloads");
const LIMIT: Param = Param("limit", Values::Whole(1, 500), "the most items; 100 if not given");
/// Every number.
const ANY: Values = Values::Whole(0, u64::MAX);
const EXECUTION_EVENTS: &str = "/instances/{id}/executions/{execution}/events";

fn read(summary: &'static str, answer: &'static str) -> About {
    About { summary, answer: Some(answer), ..About::default() }
}

fn write(summary: &'static str, body: &'static str) -> About {
    About { summary, body: Some(body), answer: Some("Accepted"), statuses: &[202], ..About::default() }
}

fn keyed(summary: &'static str, body: &'static str) -> About {
    About { is_keyed: true, ..write(summary, body) }
}

/// Adds the routes.
pub(crate) fn add(routes: Routes) -> Routes {
    let routes = add_history(add_instances(add_probes(routes)));
    add_operations(add_dead_letters(add_held(add_reset(add_operate(routes)))))
        .api(
            Method::GET,
            "/queues",
            Some(Scope::Read),
            read("The two queues of the store", "Queues"),
            store::queues,
        )
        .api(
            Method::GET,
            "/queues/{queue}/messages",
            Some(Scope::Read),
            About {
                params: &[Param("after", Values::Text, "`next` of the page before"), LIMIT],
                ..read(
                    "A page of the items of the queue `turns` or `activities`, leased and delayed ones too, without payloads",
                    "QueueMessages",
                )
            },
            store::queue_messages,
        )
        .api(
            Method::GET,
            "/nodes",
            Some(Scope::Read),
            read("The nodes that report to the store, live and lost", "Nodes"),
            store::nodes,
        )
        .api(
            Method::GET,
            "/system",
            Some(Scope::Read),
            read("The server and the totals of its store", "System"),
            store::system,
        )
        .api(
            Method::GET,
            "/series",
            Some(Scope::Read),
            read("Samples of the figures of the store, oldest first, and one of now", "Series"),
            store::series,
        )
        .api(
            Method::GET,
            "/audit",
            Some(Scope::Read),
            About {
                params: &[Param("before", ANY, "records with lower ids: `next` of the page before"), LIMIT],
                ..read("A page of the audit, newest first", "AuditPage")
            },
            store::audit,
        )
        .api(
            Method::GET,
            "/stream",
            Some(Scope::Read),
            About {
                summary: "Server-sent events that say what has changed; they carry no data",
                params: &[
                    Param("instance", Values::Text, "watches this instance; up to 16 times. Without it, the stream watches the newest instances and the queues"),
                    Param("store", Values::Flag, "true watches the newest instances and the queues too"),
                ],
                media: "text/event-stream",
                ..About::default()
            },
            stream::stream,
        )
}

fn add_instances(routes: Routes) -> Routes {
    let list = About {
        params: &[
            Param("status", Values::Text, "Running, Completed, Failed or ContinuedAsNew"),
            Param("name", Values::Text, "the orchestration"),
            Param("prefix", Values::Text, "the start of the id"),
            Param("parent", Values::Text, "the parent"),
            Param("created_from_ms", ANY, "created at or after this time"),
            Param("created_before_ms", ANY, "created before this time"),
            Param("after", Values::Text, "`next` of the page before"),
            LIMIT,
        ],
        ..read("A page of instances, newest first", "InstancePage")
    };
    let one = About { params: &[PAYLOADS], ..read("One instance", "Detail") };
    let execution =
        About { params: &[PAYLOADS], ..read("One execution (a number, or `latest`)", "ExecutionDetail") };
    let wait = About {
        params: &[
            Param("timeout", Values::Whole(0, 60), "seconds; 30 if not given"),
            Param("key", Values::Text, "waits until this key has a value, instead of the end"),
            Param("or_end", Values::Flag, "true ends the wait for a key also when the instance has ended"),
            PAYLOADS,
        ],
        statuses: &[200, 202],
        ..read("Waits until the instance has ended; 202 if it has not", "Detail")
    };
    let scope = Some(Scope::Read);
    routes
        .api(Method::GET, "/instances", scope, list, instances::list)
        .api(
            Method::GET,
            "/instances/count",
            scope,
            read("The numbers of instances", "Counts"),
            instances::count,
        )
        .api(Method::GET, "/instances/{id}", scope, one, instances::one)
        .api(
            Method::GET,
            "/instances/{id}/why",
            scope,
            read("Why the instance does not go on", "Why"),
            instances::why,
        )
        .api(
            Method::GET,
            "/instances/{id}/executions",
            scope,
            read("Its executions, newest first", "Executions"),
            instances::executions,
        )
        .api(
            Method::GET,
            "/instances/{id}/pending",
            scope,
            read("Its queued messages and activities", "Pending"),
            instances::pending,
        )
        .api(
            Method::GET,
            "/instances/{id}/stats",
            scope,
            read("The sizes of its current execution and of its values", "Stats"),
            instances::stats,
        )
        .api(
            Method::GET,
            "/instances/{id}/hold",
            scope,
            read("Its hold, if it is paused or parked", "Hold"),
            held::hold,
        )
        .api(Method::GET, "/instances/{id}/executions/{execution}", scope, execution, instances::execution)
        .api(Method::GET, "/instances/{id}/tree", scope, read("Its descendants", "Tree"), instances::tree)
        .api(Method::GET, "/instances/{id}/wait", scope, wait, instances::wait)
}

fn add_history(routes: Routes) -> Routes {
    let events = About {
        params: &[
            Param("after", ANY, "events with higher ids: `next` of the page before"),
            Param("kinds", Values::Text, "only these kinds, separated by commas"),
            LIMIT,
            PAYLOADS,
        ],
        ..read("A page of the events of an execution (a number, or `latest`)", "EventPage")
    };
    let timeline = About {
        params: &[Param("fold_retries", Values::Flag, "false shows each try")],
        ..read("The timeline of an execution", "TimelineView")
    };
    let state = About {
        params: &[Param("at", ANY, "the id of an event; the last one if not given"), PAYLOADS],
        ..read("Keys, custom status and open operations after an event", "StateView")
    };
    let payload = About { summary: "An event as it is stored, as a file", ..About::default() };
    let stored = About {
        params: &[Param("after", ANY, "events with higher ids: `next` of the page before"), LIMIT],
        ..read("A page of the events of an execution as they are stored", "StoredEvents")
    };
    let scope = Some(Scope::Read);
    routes
        .api(Method::GET, EXECUTION_EVENTS, scope, events, history::events)
        .api(
            Method::GET,
            "/instances/{id}/executions/{execution}/timeline",
            scope,
            timeline,
            history::timeline,
        )
        .api(Method::GET, "/instances/{id}/executions/{execution}/state", scope, state, history::state)
        .api(
            Method::GET,
            "/instances/{id}/executions/{execution}/history",
            Some(Scope::Payloads),
            stored,
            history::stored,
        )
        .api(
            Method::GET,
            "/instances/{id}/executions/{execution}/payloads/{event}",
            Some(Scope::Payloads),
            payload,
            history::payloads,
        )
}

fn add_dead_letters(routes: Routes) -> Routes {
    let list = About {
        params: &[
            Param("before", ANY, "dead letters with lower numbers: `next` of the page before"),
            LIMIT,
            PAYLOADS,
        ],
        ..read("A page of dead letters, newest first", "DeadLetters")
    };
    let one = About { params: &[PAYLOADS], ..read("One dead letter", "DeadLetterView") };
    let requeue = About {
        answer: Some("Settled"),
        statuses: &[200],
        ..write("Puts a dead letter back into its queue", "ReasonBody")
    };
    let remove = About {
        summary: "Deletes a dead letter",
        params: &[Param("reason", Values::Text, "for the audit; required")],
        answer: Some("Settled"),
        ..About::default()
    };
    let (read, operate) = (Some(Scope::Read), Some(Scope::Operate));
    routes
        .api(Method::GET, "/dead-letters", read, list, dead_letters::list)
        .api(Method::GET, "/dead-letters/{n}", read, one, dead_letters::one)
        .api(Method::POST, "/dead-letters/{n}/requeue", operate, requeue, dead_letters::requeue)
        .api(Method::DELETE, "/dead-letters/{n}", operate, remove, dead_letters::remove)
}

fn add_held(routes: Routes) -> Routes {
    let list = About {
        params: &[Param("after", Values::Text, "`next` of the page before"), LIMIT],
        ..read("A page of held instances by ascending id", "HeldPage")
    };
    let change = |summary| About {
        answer: Some("OrchestrationChanged"),
        statuses: &[200],
        ..write(summary, "ReasonBody")
    };
    let (scope, operate) = (Some(Scope::Read), Some(Scope::Operate));
    routes
        .api(Method::GET, "/held", scope, list, held::list)
        .api(
            Method::GET,
            "/orchestrations/paused",
            scope,
            read("The paused orchestrations", "PausedOrchestrations"),
            held::paused,
        )
        .api(
            Method::POST,
            "/orchestrations/{orchestration}/pause",
            operate,
            change("Pauses an orchestration: its instances, and those that start later, run no turn"),
            held::pause,
        )
        .api(
            Method::POST,
            "/orchestrations/{orchestration}/resume",
            operate,
            change("Resumes an orchestration and its held instances"),
            held::resume,
        )
}

fn add_reset(routes: Routes) -> Routes {
    let about =
        |summary, body| About { answer: Some("ResetAnswer"), statuses: &[200], ..write(summary, body) };
    let operate = Some(Scope::Operate);
    routes
        .api(
            Method::POST,
            "/instances/{id}/reset",
            operate,
            about("Repeats the newest execution from one of its events on", "ResetBody"),
            reset::reset,
        )
        .api(
            Method::POST,
            "/instances/{id}/fork",
            operate,
            about(
                "Starts a new instance with a copy of the first events of the newest execution",
                "ForkBody",
            ),
            reset::fork,
        )
}

fn add_operations(routes: Routes) -> Routes {
    let create = About {
        answer: Some("OperationAnswer"),
        statuses: &[200, 202],
        ..write(
            "Changes many instances, at most 200 per second. A dry run (200) returns a count and a mark, which the change (202) must name; 409 `set_changed` if the set is another one",
            "OperationBody",
        )
    };
    let stop = About {
        answer: Some("OperationView"),
        ..write("Ends an operation after the instances that are being changed", "ReasonBody")
    };
    let (scope, operate) = (Some(Scope::Read), Some(Scope::Operate));
    routes
        .api(Method::POST, "/operations", operate, create, operations::create)
        .api(
            Method::GET,
            "/operations",
            scope,
            read("The newest operations of this server, which forgets them when it stops", "OperationList"),
            operations::list,
        )
        .api(
            Method::GET,
            "/operations/{op}",
            scope,
            read("The progress of an operation", "OperationView"),
            operations::one,
        )
        .api(Method::POST, "/operations/{op}/stop", operate, stop, operations::stop)
}

fn add_operate(routes: Routes) -> Routes {
    let start = About {
        answer: Some("Started"),
        statuses: &[201, 200],
        is_keyed: true,
        is_traced: true,
        ..write("Starts an instance; the header Idempotency-Key takes the place of its id", "StartBody")
    };
    let delete = About {
        summary: "Deletes an instance and its descendants",
        params: &[
            Param("reason", Values::Text, "for the audit; required"),
            Param("force", Values::Flag, "true deletes a running instance too"),
        ],
        answer: Some("Removed"),
        ..About::default()
    };
    let prune = About {
        answer: Some("Removed"),
        statuses: &[200],
        ..write("Deletes old executions of an instance", "PruneBody")
    };
    let (operate, admin) = (Some(Scope::Operate), Some(Scope::Admin));
    routes
        .api(Method::POST, "/instances", operate, start, start::start)
        .api(
            Method::POST,
            "/instances/{id}/events",
            operate,
            keyed("Raises an event; with the header Idempotency-Key the instance takes it once", "EventBody"),
            operate::event,
        )
        .api(
            Method::POST,
            "/instances/{id}/queues/{queue}/messages",
            operate,
            keyed(
                "Puts a message into a queue of the instance; with the header Idempotency-Key once",
                "MessageBody",
            ),
            operate::message,
        )
        .api(
            Method::POST,
            "/cloudevents",
            operate,
            About {
                summary: "Raises a CloudEvent 1.0, structured or binary: the subject is the instance, the type is the event; source and id are its key",
                body: Some("CloudEventBody"),
                answer: Some("Accepted"),
                statuses: &[202],
                ..About::default()
            },
            cloudevents::receive,
        )
        .api(
            Method::POST,
            "/instances/{id}/cancel",
            operate,
            write("Asks the instance to stop", "CancelBody"),
            operate::cancel,
        )
        .api(
            Method::POST,
            "/instances/{id}/terminate",
            operate,
            write("Ends the instance at its next turn", "CancelBody"),
            operate::terminate,
        )
        .api(
            Method::POST,
            "/instances/{id}/pause",
            operate,
            write("Pauses the instance", "ReasonBody"),
            operate::pause,
        )
        .api(
            Method::POST,
            "/instances/{id}/resume",
            operate,
            write("Resumes the instance", "ReasonBody"),
            operate::resume,
        )
        .api(Method::POST, "/instances/{id}/prune", admin, prune, operate::prune)
        .api(Method::DELETE, "/instances/{id}", admin, delete, operate::delete)
}

/// Adds the probes, which need no token.
fn add_probes(routes: Routes) -> Routes {
    routes.page("/healthz", None, || ready("ok\n")).page("/readyz", None, store::ready)
}
