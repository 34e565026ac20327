//! Requests of generated sequences.

use crate::reply::Reply;
use crate::request::{Abandon, Activity, Attempts, Commit, Fence, Lease, Request};
use outlast_model::WorkItem;
use outlast_provider_kit::{ActivityRow, CommitPlan, MessageRow, TurnAtFetch};
use tokio::sync::oneshot;

pub(super) fn activity_lease() -> Lease {
    Lease::Activity { secret: [0; 16], id: 1 }
}

pub(super) fn turn_lease() -> Lease {
    let at_fetch =
        TurnAtFetch { current_execution: 1, messages: 1, is_partial: false, instance: "i".to_string() };
    Lease::Turn { secret: [0; 16], at_fetch }
}

pub(super) fn give_back(lease: Lease, delay_ms: Option<u64>) -> Request {
    let reply = Reply::new("abandon", oneshot::channel().0);
    let attempts = Attempts::default();
    Request::Abandon(Abandon { lease, delay_ms, ignore_attempt: true, note: None, reply, attempts })
}

/// An activity of a client.
pub(super) fn activity() -> Request {
    let row = ActivityRow {
        work_item: "{}".to_string(),
        instance_id: "i".to_string(),
        execution_id: 1,
        activity_id: 1,
        session_id: None,
        tag: None,
    };
    Request::Activity(Activity { row, reply: Reply::new("enqueue", oneshot::channel().0) })
}

/// The commit of a turn that schedules activities.
pub(super) fn turn_with(activities: usize) -> Request {
    let scheduled = |id: usize| WorkItem::ActivityExecute {
        instance: "i".to_string(),
        execution_id: 1,
        id: id as u64,
        name: "A".to_string(),
        input: String::new(),
        session_id: None,
        tag: None,
    };
    let activities: Vec<WorkItem> = (0..activities).map(scheduled).collect();
    let plan = CommitPlan::new(1, &[], &activities, &[], Default::default(), vec![]).unwrap();
    commit(turn_lease(), None, Some(plan))
}

/// The commit of an activity with its outcome.
pub(super) fn completion() -> Request {
    let (instance_id, work_item) = ("i".to_string(), "{}".to_string());
    let outcome = MessageRow { instance_id, work_item, not_before: 0, begins: false };
    commit(activity_lease(), Some(outcome), None)
}

fn commit(lease: Lease, completion: Option<MessageRow>, plan: Option<CommitPlan>) -> Request {
    let reply = Reply::new("commit", oneshot::channel().0);
    let (fence, attempts) = (Fence::Lease(lease), Attempts::default());
    Request::Commit(Box::new(Commit { fence, completion, plan, ahead: None, reply, attempts }))
}
