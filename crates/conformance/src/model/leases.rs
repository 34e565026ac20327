//! Leases around the millisecond in which they expire, and the effects of renewals.

use super::ops::*;
use super::sequence::Run;
use super::stories::agree;

/// One millisecond before a lease expires, the millisecond in which it expires, and one after.
const AROUND_THE_END: [u64; 3] = [LEASE - 1, LEASE, LEASE + 1];

fn enqueue(message: Message) -> Op {
    Op::Enqueue { message, delay: None }
}

fn fetch_turn() -> Op {
    Op::FetchTurn { lease: LEASE, supported: None, how: Fetch::Item }
}

fn activity(of: Id, id: u64, session: Option<&'static str>) -> Op {
    Op::EnqueueWork(Message::Activity { of, execution: 1, id, session, tag: None })
}

/// The session does not expire.
fn fetch_activity(owner: &'static str, lease: u64) -> Op {
    Op::FetchWork { lease, max: None, session: Some((owner, LEASE)), tags: Tags::Default }
}

/// The turns of two instances. The first instance has two messages and gets one more.
fn two_turns() -> Vec<Op> {
    let starts =
        [enqueue(Message::Start("a")), enqueue(Message::External("a")), enqueue(Message::Start("b"))];
    let fetches = [fetch_turn(), fetch_turn(), enqueue(Message::Cancel("a"))];
    starts.into_iter().chain(fetches).collect()
}

pub(super) fn turns_end_in_the_same_millisecond(run: Run<'_>) {
    let token = Token::Turn(1);
    let settlements = [
        Op::RenewTurn { token, extend: LEASE },
        Op::RenewTurn { token, extend: 1 },
        Op::AbandonTurn { token, delay: None, ignore_attempt: false },
        Op::AbandonTurn { token, delay: Some(7), ignore_attempt: true },
        Op::AckTurn {
            token,
            execution: Execution::Fetched,
            turn: Turn { name: Some("Flow"), ..Turn::default() },
        },
    ];
    for passed in AROUND_THE_END {
        for settlement in &settlements {
            let mut ops = two_turns();
            ops.extend([Op::Advance(passed), settlement.clone(), Op::Read(Read::Depths)]);
            ops.extend([fetch_turn(), fetch_turn(), settlement.clone()]);
            agree(run, [ops]);
        }
    }
}

pub(super) fn a_renewal_lengthens_one_lease_with_its_messages_and_never_shortens_it(run: Run<'_>) {
    let token = Token::Turn(1);
    for passed in [2 * LEASE - 1, 2 * LEASE, 2 * LEASE + 1] {
        let mut ops = two_turns();
        ops.extend([Op::Advance(LEASE - 1), Op::RenewTurn { token, extend: LEASE + 1 }]);
        ops.extend([Op::RenewTurn { token, extend: 1 }, Op::Advance(passed - LEASE + 1)]);
        ops.extend([Op::Read(Read::Depths), fetch_turn(), fetch_turn(), fetch_turn()]);
        agree(run, [ops]);
    }
}

pub(super) fn activities_and_sessions_end_in_the_same_millisecond(run: Run<'_>) {
    let token = Token::Work(1);
    let settlements = [
        Op::RenewWork { token, extend: LEASE },
        Op::RenewWork { token, extend: 1 },
        Op::AbandonWork { token, delay: None, ignore_attempt: false },
        Op::AbandonWork { token, delay: Some(7), ignore_attempt: true },
        Op::NoteWork { token, delay: Some(7), error: "busy" },
        Op::AckWork { token, completion: Some(Completion::Done) },
        Op::AckWork { token, completion: None },
        Op::RenewSessions { owners: vec!["one"], extend: LEASE, idle: LEASE },
        Op::RenewSessions { owners: vec!["two", "one"], extend: 1, idle: LEASE + 1 },
        Op::CleanUpSessions,
    ];
    for passed in AROUND_THE_END {
        for settlement in &settlements {
            for (session, lease) in [(None, LEASE), (Some("s"), LEASE), (Some("s"), 2 * LEASE)] {
                let mut ops = vec![activity("a", 1, session), activity("b", 1, Some("other"))];
                ops.extend([
                    fetch_activity("one", lease),
                    fetch_activity("two", lease),
                    activity("a", 2, session),
                ]);
                ops.extend([Op::Advance(passed), settlement.clone(), Op::Read(Read::Depths)]);
                ops.extend(["two", "two", "one"].map(|owner| fetch_activity(owner, lease)));
                ops.push(settlement.clone());
                agree(run, [ops]);
            }
        }
    }
}
