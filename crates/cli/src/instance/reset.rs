//! `outlast instance reset` and `outlast instance fork`

use super::args::{CutArgs, ForkArgs, ResetArgs};
use super::unknown;
use crate::failure::Failure;
use crate::output::{plain, print};
use crate::store::{self, Intent, Place};
use outlast::client::{ClientError, Reset, ResetSummary};
use serde::Serialize;
use std::fmt::Write;

pub(super) async fn reset(args: ResetArgs) -> Result<(), Failure> {
    let place = args.cut.common.store.clone().place()?;
    let client = store::open(&place, Intent::Write).await?;
    let wanted = wanted(&args.cut);
    let wanted = if args.cancel_children { wanted.cancel_children() } else { wanted };
    let done = client.reset_instance(&args.cut.instance, &wanted).await;
    let done = done.map_err(|error| failure(error, &place, &args.cut.instance))?;
    let head = match args.cut.dry_run {
        true => format!("A reset of instance '{}' would begin", plain(&args.cut.instance)),
        false => format!("Reset instance '{}'. It begins", plain(&args.cut.instance)),
    };
    let instance = args.cut.instance.clone();
    report(&args.cut, Done::of(instance, &args.cut, done), &head)
}

pub(super) async fn fork(args: ForkArgs) -> Result<(), Failure> {
    let place = args.cut.common.store.clone().place()?;
    let client = store::open(&place, Intent::Write).await?;
    let done = client.fork_instance(&args.cut.instance, &args.new_id, &wanted(&args.cut)).await;
    let done = done.map_err(|error| failure(error, &place, &args.cut.instance))?;
    let (old, new) = (plain(&args.cut.instance), plain(&args.new_id));
    let head = match args.cut.dry_run {
        true => format!("A fork of instance '{old}' as '{new}' would begin"),
        false => format!("Forked instance '{old}' as '{new}'. It begins"),
    };
    report(&args.cut, Done::of(args.new_id, &args.cut, done), &head)
}

fn wanted(args: &CutArgs) -> Reset {
    let reset = Reset::to_event(args.to_event).by(&args.by).because(&args.reason);
    if args.dry_run { reset.dry_run() } else { reset }
}

fn failure(error: ClientError, place: &Place, instance: &str) -> Failure {
    match error {
        ClientError::InstanceNotFound { .. } => unknown(instance, place),
        ClientError::InvalidInput { message } => Failure::new(message),
        other => other.into(),
    }
}

fn report(args: &CutArgs, done: Done, head: &str) -> Result<(), Failure> {
    print(args.common.output, &done, |done| {
        let mut text = format!(
            "{head} execution {} with {}{}.\n",
            done.execution,
            count(done.kept_events, "event"),
            left_out(done.left_events)
        );
        for (number, noun, act) in [
            (done.activities, "activity", "scheduled again"),
            (
                done.repeated_activities,
                "completed activity",
                "outcome left out; run again under other idempotency keys if the code asks for them",
            ),
            (done.timers, "timer", "set again"),
            (done.messages, "queue message", "sent again"),
        ] {
            if number > 0 {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "  {}: {act}", count(number, noun));
            }
        }
        for (children, act) in
            [(&done.answered_children, "answered with its outcome"), (&done.cancelled_children, "cancelled")]
        {
            for child in children {
                let _ = writeln!(text, "  child '{}': {act}", plain(child));
            }
        }
        text
    })
}

/// The events behind the kept ones, as a clause.
fn left_out(events: usize) -> String {
    match events {
        0 => ", which are all events of the old one".to_string(),
        events => format!(", without the {events} after them"),
    }
}

/// A number with its noun.
fn count(number: usize, noun: &str) -> String {
    match (number, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {noun}s"),
    }
}

#[derive(Serialize)]
struct Done {
    /// The instance that has the new execution.
    instance: String,
    execution: u64,
    to_event: u64,
    dry_run: bool,
    kept_events: usize,
    left_events: usize,
    activities: usize,
    repeated_activities: usize,
    timers: usize,
    messages: usize,
    answered_children: Vec<String>,
    cancelled_children: Vec<String>,
}

impl Done {
    fn of(instance: String, args: &CutArgs, done: ResetSummary) -> Self {
        Self {
            instance,
            execution: done.execution_id,
            to_event: args.to_event,
            dry_run: args.dry_run,
            kept_events: done.kept_events,
            left_events: done.left_events,
            activities: done.activities,
            repeated_activities: done.repeated_activities,
            timers: done.timers,
            messages: done.messages,
            answered_children: done.answered_children,
            cancelled_children: done.cancelled_children,
        }
    }
}
