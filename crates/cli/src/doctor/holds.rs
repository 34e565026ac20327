//! Parked instances, and instances that are paused for long.

use super::report::Check;
use crate::failure::Failure;
use outlast::client::Client;
use outlast::lens::{counted, moment, span};
use outlast::providers::{Clock, HoldKind, SystemClock};
use std::collections::BTreeMap;

/// Held instances that are read at a time.
const PAGE: usize = 500;
/// The most held instances that are checked.
const MOST: usize = 2_000;
/// An instance that is paused for this time is a finding.
const LONG_MS: u64 = 24 * 60 * 60 * 1_000;
/// The command that lists them.
const LIST: &str = "outlast instance list --held";

/// Held instances of one orchestration, by one actor.
struct Group {
    count: usize,
    since_ms: u64,
    first: String,
}

/// Groups the held instances by kind, actor and orchestration.
pub(super) async fn check(client: &Client) -> Result<Check, Failure> {
    let now_ms = SystemClock.now_ms();
    let (mut groups, mut held): (BTreeMap<(bool, String, String), Group>, usize) = (BTreeMap::new(), 0);
    let mut after: Option<String> = None;
    while held < MOST {
        let page = client.list_held(after.as_deref(), PAGE).await?;
        held += page.len();
        let is_last = page.len() < PAGE;
        after = page.last().map(|last| last.instance_id.clone());
        for one in page {
            let is_parked = one.hold.kind == HoldKind::Parked;
            if !is_parked && now_ms.saturating_sub(one.held_at_ms) < LONG_MS {
                continue;
            }
            let orchestration = orchestration(client, &one.instance_id).await?;
            let first = || Group { count: 0, since_ms: one.held_at_ms, first: one.instance_id.clone() };
            let group = groups.entry((is_parked, one.hold.actor, orchestration)).or_insert_with(first);
            group.count += 1;
            group.since_ms = group.since_ms.min(one.held_at_ms);
        }
        if is_last {
            break;
        }
    }
    let mut check = Check::fine("holds", says(held));
    for ((is_parked, actor, orchestration), group) in groups {
        let of = match orchestration.is_empty() {
            true => String::new(),
            false => format!(" of '{orchestration}'"),
        };
        let are = if group.count == 1 { "is" } else { "are" };
        let state = match is_parked {
            true => format!("{are} parked by {actor} since {} (UTC)", moment(group.since_ms)),
            false => format!("{are} paused by {actor} for {}", span(now_ms.saturating_sub(group.since_ms))),
        };
        check.found_in(&group.first, format!("{}{of} {state}: `{LIST}`", counted(group.count, "instance")));
        check.mended_by(Some(LIST));
    }
    Ok(check)
}

/// The orchestration of an instance; empty if it is not known. An instance without a turn has no row yet, only its start.
async fn orchestration(client: &Client, instance: &str) -> Result<String, Failure> {
    if let Ok(info) = client.get_instance_info(instance).await {
        return Ok(info.orchestration_name);
    }
    let pending = client.pending_work(instance, 1).await?;
    let start = pending.and_then(|pending| pending.messages.into_iter().next());
    Ok(start
        .filter(|start| start.kind.as_deref() == Some("StartOrchestration"))
        .and_then(|start| start.name)
        .unwrap_or_default())
}

fn says(held: usize) -> String {
    match held {
        0 => "no instance is paused or parked".to_string(),
        MOST.. => format!("none in the first {held} held instances"),
        held => format!("{}, none parked or paused for a day", counted(held, "held instance")),
    }
}
