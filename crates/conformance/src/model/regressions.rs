//! Sequences in which stores once differed, or that random generation rarely produces.

use super::ops::*;
use super::sequence::Run;
use super::stories::agree;

fn enqueue(message: Message) -> Op {
    Op::Enqueue { message, delay: None }
}

fn fetch() -> Op {
    Op::FetchTurn { lease: LEASE, supported: None, how: Fetch::WithHistory }
}

fn ack(execution: Execution, turn: Turn) -> Op {
    Op::AckTurn { token: Token::Turn(0), execution, turn }
}

/// A whole turn of an instance.
fn turn(id: Id, execution: Execution, turn: Turn) -> Vec<Op> {
    vec![enqueue(Message::Start(id)), fetch(), ack(execution, turn)]
}

fn named(status: Option<&'static str>, parent: Option<Id>) -> Turn {
    Turn { name: Some("Flow"), version: Some("1"), status, parent, ..Turn::default() }
}

fn set(key: &'static str) -> Turn {
    Turn { events: vec![(EventId::Next, Happened::Set(key, "1"))], ..Turn::default() }
}

fn append(id: Id, happened: Happened) -> Op {
    Op::Append { to: id, execution: 1, events: vec![(EventId::Next, happened)] }
}

pub(super) fn an_instance_that_starts_has_no_history_whatever_was_appended(run: Run<'_>) {
    agree(run, [vec![append("a", Happened::Completed), enqueue(Message::Start("a")), fetch()]]);
}

pub(super) fn lease_refuses_run_ahead_turns_after_the_clock_is_set_back(run: Run<'_>) {
    let activity = Message::Activity { of: "a", execution: 1, id: 2, session: None, tag: None };
    let with_work = Turn { work: vec![activity], ..named(None, None) };
    let ahead = Op::AckAhead {
        token: Token::Work(0),
        completion: Completion::Done,
        execution: Execution::Fetched,
        late_by: 0,
        turn: set("k"),
    };
    agree(
        run,
        [
            turn("a", Execution::Fetched, with_work),
            vec![Op::FetchWork { lease: 60_000, max: None, session: None, tags: Tags::Default }],
            vec![Op::Advance(2_000), enqueue(Message::External("a")), fetch(), Op::SetBack(1_000), ahead],
            vec![ack(Execution::Fetched, set("k"))],
        ],
    );
}

pub(super) fn events_that_were_appended_before_the_execution_count(run: Run<'_>) {
    let warm = Op::FetchTurn { lease: LEASE, supported: None, how: Fetch::Warm };
    agree(
        run,
        [
            vec![append("a", Happened::Scheduled), append("a", Happened::Scheduled)],
            turn("a", Execution::Fetched, named(None, None)),
            vec![enqueue(Message::External("a")), warm],
        ],
    );
}

pub(super) fn an_appended_failure_is_the_outcome_of_an_execution_that_failed(run: Run<'_>) {
    for status in ["Failed", "Completed"] {
        agree(
            run,
            [
                vec![append("a", Happened::Failed)],
                turn("a", Execution::Fetched, named(Some(status), None)),
                vec![Op::Read(Read::Outcome("a"))],
            ],
        );
    }
}

pub(super) fn expired_lease_is_removed_with_its_unreadable_messages(run: Run<'_>) {
    agree(
        run,
        [vec![
            enqueue(Message::Start("a")),
            fetch(),
            Op::Damage(Damage::Messages, "a"),
            Op::Advance(LEASE),
            fetch(),
            Op::AbandonTurn { token: Token::Turn(0), delay: None, ignore_attempt: false },
        ]],
    );
}

pub(super) fn expired_lease_is_removed_when_only_orphans_remain(run: Run<'_>) {
    agree(
        run,
        [vec![
            enqueue(Message::Start("a")),
            fetch(),
            Op::Damage(Damage::Messages, "a"),
            enqueue(Message::Cancel("a")),
            Op::Advance(LEASE),
            fetch(),
            Op::RenewTurn { token: Token::Turn(0), extend: LEASE },
            Op::AbandonTurn { token: Token::Turn(0), delay: None, ignore_attempt: true },
        ]],
    );
}

pub(super) fn unreadable_messages_are_set_aside_in_their_order(run: Run<'_>) {
    agree(
        run,
        [vec![
            Op::Enqueue { message: Message::Cancel("a"), delay: Some(1) },
            enqueue(Message::Start("a")),
            fetch(),
            Op::Advance(LEASE),
            Op::Damage(Damage::Messages, "a"),
            fetch(),
            Op::Read(Read::DeadLetters(2)),
        ]],
    );
}

pub(super) fn a_deletion_names_the_running_instance_before_the_orphan(run: Run<'_>) {
    agree(
        run,
        [
            turn("a", Execution::Fetched, named(None, None)),
            turn("b", Execution::Fetched, named(None, Some("a1"))),
            vec![Op::DeleteAtomic { ids: vec!["a1", "a"], force: false }],
        ],
    );
}

pub(super) fn keys_that_an_older_execution_changed_are_merged_by_the_newest(run: Run<'_>) {
    agree(
        run,
        [
            turn("a", Execution::Number(2), named(None, None)),
            turn("a", Execution::Number(1), set("k")),
            turn("a", Execution::Number(2), named(Some("Completed"), None)),
        ],
    );
    agree(
        run,
        [
            turn("a", Execution::Number(2), Turn::default()),
            turn("a", Execution::Number(1), set("k")),
            turn("a", Execution::Number(3), named(Some("ContinuedAsNew"), None)),
        ],
    );
}

pub(super) fn roots_that_stay_do_not_count_against_the_limit_of_a_bulk_deletion(run: Run<'_>) {
    let bulk = |ids, limit| Op::DeleteBulk(Bulk { ids, finished_ago: None, limit: Some(limit) });
    for ids in [None, Some(vec!["b", "a", "ö"])] {
        agree(
            run,
            [
                turn("a", Execution::Fetched, named(Some("Completed"), None)),
                turn("a1", Execution::Fetched, named(None, Some("a"))),
                turn("b", Execution::Fetched, named(Some("Failed"), None)),
                turn("ö", Execution::Fetched, named(Some("Completed"), None)),
                vec![bulk(ids.clone(), 1), bulk(ids, 2)],
            ],
        );
    }
}

pub(super) fn pruning_leaves_the_time_of_the_last_turn(run: Run<'_>) {
    agree(
        run,
        [
            turn("a", Execution::Number(2), named(None, None)),
            vec![Op::Advance(1)],
            turn("a", Execution::Number(1), Turn { status: Some("Completed"), ..Turn::default() }),
            vec![Op::Prune { id: "a", keep_last: None, finished_ago: None }, Op::Read(Read::Info("a"))],
        ],
    );
}

pub(super) fn a_page_position_is_taken_only_as_it_was_given_out(run: Run<'_>) {
    let positions = ["+1", "01", "0", "-1", " 1", "1 ", "99999999999999999999"];
    agree(
        run,
        [
            turn("a", Execution::Fetched, named(None, None)),
            turn("b", Execution::Fetched, named(None, None)),
            positions.into_iter().map(|position| Op::Read(Read::BogusPage(position))).collect(),
        ],
    );
}

pub(super) fn a_clock_that_is_set_back_changes_no_order(run: Run<'_>) {
    agree(
        run,
        [
            turn("a", Execution::Fetched, named(None, None)),
            vec![Op::SetBack(1_000)],
            turn("b", Execution::Fetched, named(None, None)),
            vec![
                Op::Read(Read::Instances),
                Op::Read(Read::Query(Query { limit: Some(1), ..Query::default() })),
            ],
        ],
    );
}

pub(super) fn a_clock_that_is_set_back_lengthens_leases(run: Run<'_>) {
    agree(
        run,
        [vec![
            enqueue(Message::Start("a")),
            fetch(),
            Op::SetBack(1_000),
            Op::Advance(LEASE),
            fetch(),
            Op::RenewTurn { token: Token::Turn(0), extend: LEASE },
            Op::Advance(LEASE),
            fetch(),
            Op::AbandonTurn { token: Token::DoneTurn(0), delay: None, ignore_attempt: false },
        ]],
    );
}

pub(super) fn instance_has_the_queue_position_of_its_first_message(run: Run<'_>) {
    // The orphan's newer message has been visible longer than its older one, but not as long as the message of the other instance.
    let sends = |messages| Turn { messages, ..named(None, None) };
    agree(
        run,
        [
            turn("a", Execution::Fetched, sends(vec![Message::Completed("a1", 1)])),
            turn("b", Execution::Fetched, sends(vec![Message::ChildCompleted("b"), Message::Queue("a1")])),
            vec![Op::Advance(1_000), fetch()],
        ],
    );
}

pub(super) fn an_unreadable_start_is_not_waited_for(run: Run<'_>) {
    let delayed = Op::Enqueue { message: Message::Start("b"), delay: Some(1) };
    let start = Op::Start { to: "b", delay: None, use_existing: false, along: vec![] };
    let queue = vec![enqueue(Message::Queue("b")), fetch()];
    agree(run, [vec![delayed.clone(), Op::Damage(Damage::Messages, "b")], queue.clone()]);
    agree(run, [vec![delayed, Op::Damage(Damage::Messages, "b"), start], queue]);
}

pub(super) fn an_unreadable_activity_claims_no_session(run: Run<'_>) {
    let activity =
        |id| Op::EnqueueWork(Message::Activity { of: "a", execution: 1, id, session: Some("s1"), tag: None });
    let fetch =
        |owner| Op::FetchWork { lease: LEASE, max: None, session: Some((owner, LEASE)), tags: Tags::Default };
    let damaged = vec![activity(1), Op::Damage(Damage::Work, "a")];
    agree(run, [damaged.clone(), vec![fetch("o1"), activity(2), fetch("o2")]]);
    agree(run, [damaged, vec![activity(2), fetch("o1"), fetch("o2")]]);
}
