//! Open operations, their progress, and the state of the turn.

use crate::kit::{NOW, history, queues};
use outlast_lens::{OpenOperation, Operation, Progress, TurnState, open_operations, turn_state, waits};
use outlast_model::PendingWork;

fn line(open: OpenOperation) -> String {
    let what = match open.operation {
        Operation::Activity { name, .. } => format!("activity {name}"),
        Operation::Timer { fire_at_ms } => format!("timer {fire_at_ms}"),
        Operation::Event { name } => format!("event {name}"),
        Operation::Queue { name } => format!("queue {name}"),
        Operation::Child { instance, .. } => format!("child {instance}"),
    };
    format!("{} {what} since {}", open.event_id, open.since_ms)
}

#[test]
fn operations_are_open_until_their_outcome() {
    for (events, expected) in [
        ("", &[][..]),
        ("2 @20 activity A", &["2 activity A since 20"]),
        ("2 @20 activity A\n3 @30 ok 2", &[]),
        ("2 @20 activity A\n3 @30 failed 2", &[]),
        ("2 @20 activity A\n3 @30 cancelled 2", &[]),
        ("2 @20 activity A\n3 @30 activity B\n4 @40 ok 2", &["3 activity B since 30"]),
        ("2 @20 timer 99", &["2 timer 99 since 20"]),
        ("2 @20 timer 99\n3 @99 fired 2", &[]),
        ("2 @20 child C sub::2", &["2 child i::sub::2 since 20"]),
        ("2 @20 child C own\n3 @30 detached D d", &["2 child own since 20"]),
        ("2 @20 child C sub::2\n3 @30 ok 2", &[]),
        ("2 @20 child C sub::2\n3 @30 failed 2", &[]),
        ("2 @20 child C sub::2\n3 @30 cancelled 2", &[]),
        ("2 @20 wait go\n3 @30 event stop", &["2 event go since 20"]),
        ("2 @20 wait go\n3 @30 wait go\n4 @40 event go", &["3 event go since 30"]),
        ("2 @20 wait go\n3 @30 wait go\n4 @40 cancelled 2\n5 @50 event go", &[]),
        ("2 @20 event go\n3 @30 wait go", &["3 event go since 30"]),
        ("2 @20 queue q\n3 @30 queue q\n4 @40 message q", &["3 queue q since 30"]),
        ("2 @20 message q\n3 @30 queue q", &[]),
        ("2 @20 queue q\n3 @30 queue q\n4 @40 message q\n5 @50 cancelled 2", &[]),
        ("2 @20 queue q\n3 @30 queue r\n4 @40 message r", &["2 queue q since 20"]),
        ("2 @20 activity A\n3 @30 completed", &[]),
        ("2 @20 activity A\n3 @30 continued", &[]),
        ("2 @20 activity A\n3 @30 ended code", &[]),
    ] {
        let history = history(&format!("1 @10 started O 1.0.0\n{events}"));
        let lines: Vec<String> = open_operations(&history).into_iter().map(line).collect();
        assert_eq!(lines, expected, "{events}");
    }
}

#[test]
fn carried_messages_and_early_events_end_waits() {
    for (text, expected) in [
        ("1 @0 started O 1.0.0 carries=q\n2 @20 queue q", 0),
        ("1 @0 started O 1.0.0 carries=r\n2 @20 queue q", 1),
        ("1 @0 started O 1.0.0 carries=q,q\n2 @20 queue q\n3 @20 queue q\n4 @20 queue q", 1),
        ("1 @0 started O 1.0.0 stamp=+buffered\n2 @20 event go\n3 @30 wait go", 0),
        ("1 @0 started O 1.0.0\n2 @20 event go\n3 @30 wait go", 1),
    ] {
        assert_eq!(open_operations(&history(text)).len(), expected, "{text}");
    }
}

#[test]
fn the_queues_determine_the_progress_of_an_operation() {
    let queued = |visible_at_ms, deliveries| Progress::Queued { visible_at_ms, deliveries };
    for (operation, rows, expected) in [
        ("activity A", "activity A #2 visible=900", queued(900, 0)),
        (
            "activity A",
            "activity A #2 locked=1500 tries=2",
            Progress::Leased { until_ms: 1_500, deliveries: 2 },
        ),
        ("activity A", "message ActivityFailed #2", Progress::Answered),
        ("activity A", "message ActivityCompleted #2", Progress::Answered),
        ("activity A", "message ActivityCompleted #3", Progress::Lost),
        ("activity A", "message ActivityCompleted #2 execution=7", Progress::Lost),
        ("activity A", "activity A #2 execution=7", Progress::Lost),
        ("activity A", "activity A #3", Progress::Lost),
        ("timer 200000", "message TimerFired #2 visible=200000", Progress::Sleeping { until_ms: 200_000 }),
        ("timer 5000", "message TimerFired #2 visible=100000", Progress::Answered),
        ("timer 5000", "", Progress::Lost),
        ("child C c", "", Progress::Outside),
        ("child C c", "message SubOrchCompleted #2", Progress::Answered),
        ("child C c", "message SubOrchFailed #2", Progress::Answered),
        ("wait go", "", Progress::Outside),
        ("wait go", "message ExternalRaised stop", Progress::Outside),
        ("wait go", "message QueueMessage go", Progress::Outside),
        ("wait go", "message ExternalRaised go", Progress::Answered),
        ("queue q", "message QueueMessage q", Progress::Answered),
    ] {
        let history = history(&format!("1 @0 started O 1.0.0\n2 @20 {operation}"));
        let found = waits(&history, Some(&queues(rows).pending));
        assert_eq!(found[0].progress, expected, "{operation}: {rows}");
        assert_eq!(waits(&history, None)[0].progress, Progress::Unknown);
    }
    let history = history("1 @0 started O 1.0.0\n2 @20 activity A");
    let cut_short = PendingWork { activity_count: 1, ..queues("").pending };
    assert_eq!(waits(&history, Some(&cut_short))[0].progress, Progress::Unknown, "beyond the limit");
}

#[test]
fn one_message_ends_one_wait() {
    let history = history("1 @0 started O 1.0.0\n2 @20 wait go\n3 @20 wait go");
    let found = waits(&history, Some(&queues("message ExternalRaised go").pending));
    let progress: Vec<Progress> = found.into_iter().map(|wait| wait.progress).collect();
    assert_eq!(progress, [Progress::Answered, Progress::Outside]);
}

#[test]
fn a_turn_is_idle_due_or_leased() {
    let later = "message TimerFired #2 visible=100001";
    assert_eq!(turn_state(&queues(later).pending), TurnState::Idle);
    let due = "message QueueMessage q visible=900\nmessage ExternalRaised go visible=950 tries=7";
    assert_eq!(
        turn_state(&queues(&format!("{due}\n{later}")).pending),
        TurnState::Due { messages: 2, since_ms: 900, deliveries: 7 }
    );
    let until = NOW + 200;
    let leased = format!("lease {until}\nmessage ExternalRaised go tries=7 locked={until}");
    assert_eq!(turn_state(&queues(&leased).pending), TurnState::Leased { until_ms: until, deliveries: 7 });
}
