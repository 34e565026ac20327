//! Random sequences over few instances and values, so that calls interact.

mod admin;

use super::ops::*;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;

/// A sequence of 60 calls on average. It starts with a few instances, so that later calls find data.
pub(super) fn sequence() -> impl Strategy<Value = Vec<Op>> {
    (vec(begun(), 0..4), vec(step(), 1..=68))
        .prop_map(|(begun, steps)| begun.into_iter().chain(steps).flatten().collect())
}

/// A call, or a few related calls.
fn step() -> impl Strategy<Value = Vec<Op>> {
    prop_oneof![
        40 => op().prop_map(|op| vec![op]),
        6 => begun(),
        4 => continued(),
        3 => worked(),
        4 => worked_ahead(),
        4 => begun_ahead().prop_map(|op| vec![op]),
        3 => worked_together(),
    ]
}

/// Starts an instance that waits for two activities, whose outcomes are delivered together with the next turn.
fn worked_together() -> impl Strategy<Value = Vec<Op>> {
    let late_by = prop_oneof![8 => Just(0), 1 => Just(1_u64)];
    let tokens = prop_oneof![
        6 => Just(vec![Token::Work(1), Token::Work(0)]),
        2 => vec(activity_token(), 1..4),
    ];
    (id(), unfiltered(), turn(), turn(), tokens, late_by).prop_map(
        |(id, fetch, mut first, turn, tokens, late_by)| {
            (first.name, first.version, first.status) = (Some("Flow"), Some("1"), None);
            let activity =
                |nth| Message::Activity { of: id, execution: 1, id: nth, session: None, tag: None };
            first.work = vec![activity(2), activity(3)];
            let started = Op::AckTurn { token: Token::Turn(0), execution: Execution::Fetched, turn: first };
            vec![
                Op::Enqueue { message: Message::Start(id), delay: None },
                fetch,
                started,
                Op::FetchWork { lease: LEASE, max: Some(2), session: None, tags: Tags::Default },
                Op::AckFused { tokens, late_by, turn },
            ]
        },
    )
}

/// Starts an instance with its first turn.
fn begun_ahead() -> impl Strategy<Value = Op> {
    let after = prop_oneof![8 => Just(0), 1 => Just(1)];
    (id(), after, turn()).prop_map(|(to, after, mut turn)| {
        turn.events.insert(0, (EventId::Next, Happened::Started { carried: 0 }));
        turn.name = turn.name.or(Some("Flow"));
        turn.version = turn.version.or(Some("1"));
        Op::StartAhead { to, after, turn }
    })
}

fn begun() -> impl Strategy<Value = Vec<Op>> {
    (id(), unfiltered(), execution(), turn()).prop_map(|(id, fetch, execution, mut turn)| {
        turn.events.insert(0, (EventId::Next, Happened::Started { carried: 0 }));
        turn.name = turn.name.or(Some("Flow"));
        turn.version = turn.version.or(Some("1"));
        let ack = Op::AckTurn { token: Token::Turn(0), execution, turn };
        vec![Op::Enqueue { message: Message::Start(id), delay: None }, fetch, ack]
    })
}

fn continued() -> impl Strategy<Value = Vec<Op>> {
    (message(), unfiltered(), execution(), turn()).prop_map(|(message, fetch, execution, turn)| {
        let ack = Op::AckTurn { token: Token::Turn(0), execution, turn };
        vec![Op::Enqueue { message, delay: None }, fetch, ack]
    })
}

fn worked() -> impl Strategy<Value = Vec<Op>> {
    (activity(), fetch_activity(), completion()).prop_map(|(activity, fetch, completion)| {
        let ack = Op::AckWork { token: Token::Work(0), completion: Some(completion) };
        vec![Op::EnqueueWork(activity), fetch, ack]
    })
}

/// Starts an instance that waits for an activity, whose outcome is delivered with the next turn.
fn worked_ahead() -> impl Strategy<Value = Vec<Op>> {
    let ack = ack_ahead(Just(Token::Work(0)));
    (id(), unfiltered(), turn(), fetch_activity(), ack).prop_map(
        |(id, fetch, mut turn, fetch_activity, ack)| {
            (turn.name, turn.version, turn.status) = (Some("Flow"), Some("1"), None);
            turn.work = vec![Message::Activity { of: id, execution: 1, id: 2, session: None, tag: None }];
            let started = Op::AckTurn { token: Token::Turn(0), execution: Execution::Fetched, turn };
            vec![
                Op::Enqueue { message: Message::Start(id), delay: None },
                fetch,
                started,
                fetch_activity,
                ack,
            ]
        },
    )
}

fn ack_ahead(token: impl Strategy<Value = Token>) -> impl Strategy<Value = Op> {
    let late_by = prop_oneof![8 => Just(0), 1 => 1_u64..3];
    (token, completion(), execution(), late_by, turn()).prop_map(
        |(token, completion, execution, late_by, turn)| Op::AckAhead {
            token,
            completion,
            execution,
            late_by,
            turn,
        },
    )
}

// Earlier alternatives are simpler: shrinking moves towards them.
fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        11 => advance().prop_map(Op::Advance),
        5 => admin::read().prop_map(Op::Read),
        13 => (message(), delay()).prop_map(|(message, delay)| Op::Enqueue { message, delay }),
        2 => (message(), 0_usize..4).prop_map(|(message, most)| Op::EnqueueWithin { message, most }),
        3 => start(),
        20 => fetch_turn(),
        15 => ack_turn(),
        4 => (turn_token(), delay(), any::<bool>())
            .prop_map(|(token, delay, ignore_attempt)| Op::AbandonTurn { token, delay, ignore_attempt }),
        3 => (turn_token(), span()).prop_map(|(token, extend)| Op::RenewTurn { token, extend }),
        2 => turn_token().prop_map(|token| Op::HoldTurn { token }),
        3 => id().prop_map(Op::Hold),
        5 => id().prop_map(Op::Release),
        5 => branch().prop_map(Op::Reset),
        2 => append(),
        5 => activity().prop_map(Op::EnqueueWork),
        14 => fetch_activity(),
        7 => (activity_token(), weighted(0.8, completion()))
            .prop_map(|(token, completion)| Op::AckWork { token, completion }),
        7 => ack_ahead(activity_token()),
        3 => (activity_token(), delay(), any::<bool>())
            .prop_map(|(token, delay, ignore_attempt)| Op::AbandonWork { token, delay, ignore_attempt }),
        3 => (activity_token(), delay(), select(&["busy", "", "a ß"][..]))
            .prop_map(|(token, delay, error)| Op::NoteWork { token, delay, error }),
        3 => (activity_token(), span()).prop_map(|(token, extend)| Op::RenewWork { token, extend }),
        3 => (vec(select(&["o1", "o2"][..]), 0..3), span(), span())
            .prop_map(|(owners, extend, idle)| Op::RenewSessions { owners, extend, idle }),
        3 => Just(Op::CleanUpSessions),
        10 => admin::change(),
        1 => (select(&[Damage::History, Damage::Messages, Damage::Work][..]), id())
            .prop_map(|(what, id)| Op::Damage(what, id)),
        1 => Just(Op::Reopen),
    ]
}

fn id() -> impl Strategy<Value = Id> {
    select(&INSTANCES[..])
}

/// An instance, mostly with a valid id.
fn target() -> impl Strategy<Value = Id> {
    prop_oneof![60 => id(), 1 => select(&["", "line\nbreak"][..])]
}

fn advance() -> impl Strategy<Value = u64> {
    prop_oneof![
        12 => select(&[0, 1, 1_000, LEASE - 1, LEASE, LEASE + 1][..]),
        2 => Just(60_000),
        1 => Just(25 * 60 * 60 * 1_000),
    ]
}

fn delay() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![7 => Just(None), 3 => select(&[0, 1, 1_000, LEASE, 60_000, FOR_EVER][..]).prop_map(Some)]
}

/// A lease, an extension or a window.
fn span() -> impl Strategy<Value = u64> {
    prop_oneof![8 => Just(LEASE), 3 => select(&[1, 1_000, 30_000, 60_000][..]), 1 => select(&[0, FOR_EVER][..])]
}

fn bogus() -> impl Strategy<Value = Token> {
    let texts = [
        "",
        "bogus",
        "lock_00000000000000000000000000000000.a",
        "lock_00000000000000000000000000000000.1",
        "lock_00000000000000000000000000000000.",
    ];
    select(texts.to_vec()).prop_map(Token::Bogus)
}

fn turn_token() -> impl Strategy<Value = Token> {
    prop_oneof![
        20 => Just(Token::Turn(0)),
        10 => (0_usize..4).prop_map(Token::Turn),
        4 => (0_usize..4).prop_map(Token::DoneTurn),
        1 => Just(Token::Work(0)),
        1 => bogus(),
    ]
}

fn activity_token() -> impl Strategy<Value = Token> {
    prop_oneof![
        20 => Just(Token::Work(0)),
        10 => (0_usize..4).prop_map(Token::Work),
        4 => (0_usize..4).prop_map(Token::DoneWork),
        1 => Just(Token::Turn(0)),
        1 => bogus(),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        8 => target().prop_map(Message::Start),
        3 => target().prop_map(Message::StartVersion),
        2 => target().prop_map(Message::Continue),
        2 => (target(), 1_u64..4).prop_map(|(to, id)| Message::Completed(to, id)),
        1 => (target(), 1_u64..4).prop_map(|(to, id)| Message::Failed(to, id)),
        3 => (target(), select(&[-1_000, 0, 1, 1_000, 5_000, 60_000, i64::MAX][..]))
            .prop_map(|(to, fires_in)| Message::Timer(to, fires_in)),
        2 => target().prop_map(Message::External),
        1 => target().prop_map(Message::ChildCompleted),
        1 => target().prop_map(Message::ChildFailed),
        2 => target().prop_map(Message::Cancel),
        3 => target().prop_map(Message::Queue),
    ]
}

fn activity() -> impl Strategy<Value = Message> {
    let session = weighted(0.5, select(&["s1", "s2"][..]));
    let tag = weighted(0.4, select(&["x", "y", ""][..]));
    let parts = (target(), 1_u64..4, 1_u64..5, session, tag);
    let activity = parts.prop_map(|(of, execution, id, session, tag)| Message::Activity {
        of,
        execution,
        id,
        session,
        tag,
    });
    prop_oneof![40 => activity, 1 => message()]
}

/// The items that a turn sends: mostly messages.
fn sent() -> impl Strategy<Value = Message> {
    prop_oneof![40 => message(), 1 => activity()]
}

fn start() -> impl Strategy<Value = Op> {
    let along = prop_oneof![12 => id().prop_map(Message::Queue), 1 => message()];
    (target(), delay(), any::<bool>(), vec(along, 0..3), weighted(0.9, Just(()))).prop_map(
        |(to, delay, use_existing, mut along, fitting)| {
            if fitting.is_some() {
                along.iter_mut().for_each(|message| *message = Message::Queue(to));
            }
            Op::Start { to, delay, use_existing, along }
        },
    )
}

fn how() -> impl Strategy<Value = Fetch> {
    select(&[Fetch::Item, Fetch::WithHistory, Fetch::Warm][..])
}

fn unfiltered() -> impl Strategy<Value = Op> {
    (span(), how()).prop_map(|(lease, how)| Op::FetchTurn { lease, supported: None, how })
}

fn fetch_turn() -> impl Strategy<Value = Op> {
    let range =
        select(&[("0.0.0", "0.1.32"), ("0.1.32", "0.2.0"), ("1.0.0-rc.1", "1.0.0"), ("2.0.0", "1.0.0")][..]);
    (span(), weighted(0.3, vec(range, 0..3)), how()).prop_map(|(lease, supported, how)| Op::FetchTurn {
        lease,
        supported,
        how,
    })
}

fn event() -> impl Strategy<Value = (EventId, Happened)> {
    let id = prop_oneof![
        60 => Just(EventId::Next),
        3 => Just(EventId::Skip),
        1 => Just(EventId::Repeat),
        1 => Just(EventId::Zero),
    ];
    let key = || select(&["k", "ключ", ""][..]);
    let happened = prop_oneof![
        4 => Just(Happened::Scheduled),
        4 => (0_usize..3).prop_map(|carried| Happened::Started { carried }),
        1 => Just(Happened::Completed),
        2 => Just(Happened::Failed),
        1 => Just(Happened::ContinuedAsNew),
        3 => select(&[None, Some("half"), Some("")][..]).prop_map(Happened::Status),
        6 => (key(), select(&["1", "zwölf", ""][..])).prop_map(|(key, value)| Happened::Set(key, value)),
        3 => key().prop_map(Happened::Clear),
        2 => Just(Happened::ClearAll),
    ];
    (id, happened)
}

fn turn() -> impl Strategy<Value = Turn> {
    let status = prop_oneof![
        5 => Just(None),
        1 => Just(Some("Running")),
        4 => select(&["Completed", "Failed", "ContinuedAsNew"][..]).prop_map(Some),
    ];
    let metadata = (
        status,
        weighted(0.5, select(&["", "out"][..])),
        weighted(0.7, select(&["Flow", "Other"][..])),
        weighted(0.85, select(&["1", "2"][..])),
        weighted(0.4, id()),
        weighted(0.3, select(&["0.1.32", "0.2.0-rc.1", "1.0.0", "1.2000.3"][..])),
    );
    let cancelled = vec((id(), 1_u64..4, 1_u64..5), 0..3);
    (vec(event(), 0..4), vec(activity(), 0..3), vec(sent(), 0..3), cancelled, metadata).prop_map(
        |(events, work, messages, cancelled, (status, output, name, version, parent, pin))| Turn {
            events,
            work,
            messages,
            cancelled,
            status,
            output,
            name,
            version,
            parent,
            pin,
        },
    )
}

fn execution() -> impl Strategy<Value = Execution> {
    prop_oneof![
        12 => Just(Execution::Fetched),
        4 => Just(Execution::Next),
        1 => (1_u64..4).prop_map(Execution::Number),
    ]
}

/// Mostly of an instance that exists, and up to date.
fn branch() -> impl Strategy<Value = Branch> {
    let target = weighted(0.35, id());
    let late_by = prop_oneof![10 => Just(0), 1 => Just(1)];
    let keys = vec((select(&["k", "ключ", ""][..]), select(&["9", ""][..])), 0..3);
    let status = select(&[None, Some("half"), Some("")][..]);
    let first = vec(select(&[0, 1, 2][..]), 0..3);
    (id(), target, 0_usize..5, late_by, keys, status, first, turn()).prop_map(
        |(of, target, keep, late_by, keys, custom_status, first, turn)| {
            let target = target.unwrap_or(of);
            let message = |kind| match kind {
                0 => Message::Queue(target),
                1 => Message::External(target),
                _ => Message::Completed(target, 2),
            };
            let turn = Turn {
                events: vec![],
                status: None,
                output: None,
                name: Some("Flow"),
                version: Some("1"),
                ..turn
            };
            let first = first.into_iter().map(message).collect();
            Branch { of, target, keep, late_by, keys, custom_status, first, turn }
        },
    )
}

fn ack_turn() -> impl Strategy<Value = Op> {
    (turn_token(), execution(), turn()).prop_map(|(token, execution, turn)| Op::AckTurn {
        token,
        execution,
        turn,
    })
}

fn append() -> impl Strategy<Value = Op> {
    (target(), 1_u64..4, vec(event(), 0..3)).prop_map(|(to, execution, events)| Op::Append {
        to,
        execution,
        events,
    })
}

fn fetch_activity() -> impl Strategy<Value = Op> {
    let some = || vec(select(&["x", "y", ""][..]), 1..3);
    let tags = prop_oneof![
        4 => Just(Tags::Default),
        3 => some().prop_map(Tags::Only),
        3 => some().prop_map(Tags::DefaultAnd),
        4 => Just(Tags::Any),
        1 => Just(Tags::None),
    ];
    let session = weighted(0.7, (select(&["o1", "o2"][..]), span()));
    (span(), weighted(0.5, 0_usize..4), session, tags).prop_map(|(lease, max, session, tags)| {
        // A batch under leases of length zero would hold the same row twice.
        let lease = if max.is_some() { lease.max(1) } else { lease };
        Op::FetchWork { lease, max, session, tags }
    })
}

fn completion() -> impl Strategy<Value = Completion> {
    prop_oneof![
        8 => Just(Completion::Done),
        4 => Just(Completion::Failed),
        1 => message().prop_map(Completion::Other),
    ]
}
