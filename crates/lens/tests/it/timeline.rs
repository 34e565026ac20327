//! Histories and their spans.

use crate::kit::{SECRET, history};
use outlast_lens::{Span, Timeline, TimelineOptions, timeline};

fn fold(text: &str, now_ms: u64) -> Timeline {
    let found = timeline(&history(text), now_ms, &TimelineOptions::default());
    assert!(!format!("{found:?}").contains(SECRET), "no payload");
    found
}

/// `EVENT KIND NAME FROM..TO STATUS LANE`, and the tries of an activity.
fn line(span: &Span) -> String {
    let end = span.end_ms.map_or(String::new(), |end| end.to_string());
    let due = span.due_ms.map_or(String::new(), |due| format!(" due={due}"));
    let instance = span.instance.as_ref().map_or(String::new(), |id| format!(" id={id}"));
    let tries = match span.attempts {
        1 => String::new(),
        attempts => format!(" x{attempts}"),
    };
    let count = if span.count == 1 { String::new() } else { format!(" count={}", span.count) };
    let name = if span.name.is_empty() { "-" } else { &span.name };
    let (event, kind, start, status, lane) =
        (span.event_id, span.kind, span.start_ms, span.status, span.lane);
    format!("{event} {kind:?} {name}{instance}{tries}{count} {start}..{end} {status:?}{due} lane={lane}")
}

fn lines(text: &str, now_ms: u64) -> Vec<String> {
    fold(text, now_ms).spans.iter().map(line).collect()
}

#[test]
fn every_kind_of_operation_has_a_span_until_its_end() {
    let started = "1 @0 started Order 1.0.0";
    for (events, expected) in [
        ("", &[][..]),
        ("2 @10 activity Charge", &["2 Activity Charge 10.. Running lane=0"]),
        ("2 @10 activity Charge\n3 @30 ok 2", &["2 Activity Charge 10..30 Done lane=0"]),
        ("2 @10 activity Charge\n3 @30 failed 2", &["2 Activity Charge 10..30 Failed lane=0"]),
        ("2 @10 activity Charge\n3 @30 cancelled 2", &["2 Activity Charge 10..30 Cancelled lane=0"]),
        ("2 @10 timer 90", &["2 Timer - 10.. Running due=90 lane=0"]),
        ("2 @10 timer 90\n3 @91 fired 2", &["2 Timer - 10..91 Done lane=0"]),
        ("2 @10 wait approve\n3 @40 event approve", &["2 Wait approve 10..40 Done lane=0"]),
        ("2 @10 queue orders\n3 @40 message orders", &["2 Queue orders 10..40 Done lane=0"]),
        ("2 @10 message orders\n3 @40 queue orders", &["3 Queue orders 40..40 Done lane=0"]),
        (
            "2 @10 child Deliver sub::2\n3 @40 failed 2",
            &["2 Child Deliver id=i::sub::2 10..40 Failed lane=0"],
        ),
        ("2 @10 detached Audit a-1", &["2 Detached Audit id=a-1 10..10 Done lane=0"]),
        ("2 @10 continued", &["2 ContinueAsNew - 10..10 Done lane=0"]),
        (
            "2 @10 wait approve\n3 @10 timer 90\n4 @50 completed",
            &["2 Wait approve 10..50 Abandoned lane=0", "3 Timer - 10..50 Abandoned lane=1"],
        ),
        // The clock of the process that wrote the outcome is behind.
        ("2 @10 activity Charge\n3 @5 ok 2", &["2 Activity Charge 10..10 Done lane=0"]),
    ] {
        assert_eq!(lines(&format!("{started}\n{events}"), 100), expected, "{events}");
    }
}

#[test]
fn tries_of_an_activity_are_one_span() {
    let twice = "1 @0 started Order 1.0.0
        2 @10 activity Charge
        3 @20 failed 2
        4 @20 timer 1020
        5 @1020 fired 4
        6 @1020 activity Charge";
    for (events, expected) in [
        (twice.to_string(), &["2 Activity Charge x2 10.. Running lane=0"][..]),
        (format!("{twice}\n7 @1040 ok 6"), &["2 Activity Charge x2 10..1040 Done lane=0"]),
        (
            format!("{twice}\n7 @1040 failed 6\n8 @1040 timer 3040\n9 @3040 fired 8\n10 @3040 activity Charge\n11 @3050 ok 10"),
            &["2 Activity Charge x3 10..3050 Done lane=0"],
        ),
        // The timer of the next try runs.
        (
            format!("{twice}\n7 @1040 failed 6\n8 @1040 timer 3040"),
            &["2 Activity Charge x2 10..1040 Failed lane=0", "8 Timer - 1040.. Running due=3040 lane=0"],
        ),
        // A policy without delay sets no timer.
        (
            "1 @0 started O 1.0.0\n2 @10 activity Charge\n3 @20 failed 2\n4 @20 activity Charge".to_string(),
            &["2 Activity Charge x2 10.. Running lane=0"],
        ),
        // Another input is another activity.
        (
            twice.replace("6 @1020 activity Charge", "6 @1020 activity Charge input=other"),
            &[
                "2 Activity Charge 10..20 Failed lane=0",
                "4 Timer - 20..1020 Done lane=0",
                "6 Activity Charge 1020.. Running lane=0",
            ],
        ),
        // A completed activity is not tried again.
        (
            twice.replace("failed 2", "ok 2"),
            &[
                "2 Activity Charge 10..20 Done lane=0",
                "4 Timer - 20..1020 Done lane=0",
                "6 Activity Charge 1020.. Running lane=0",
            ],
        ),
        // A timer that was set before the failure is no backoff.
        (
            "1 @0 started O 1.0.0\n2 @10 activity Charge\n3 @10 timer 15\n4 @20 failed 2\n5 @21 fired 3\n6 @21 activity Charge"
                .to_string(),
            &[
                "2 Activity Charge 10..20 Failed lane=0",
                "3 Timer - 10..21 Done lane=1",
                "6 Activity Charge 21.. Running lane=0",
            ],
        ),
        // A timer of a later turn is no backoff.
        (
            twice.replace("4 @20 timer", "4 @21 timer"),
            &[
                "2 Activity Charge 10..20 Failed lane=0",
                "4 Timer - 21..1020 Done lane=0",
                "6 Activity Charge 1020.. Running lane=0",
            ],
        ),
        // Two activities with the same name and input, both tried again.
        (
            "1 @0 started O 1.0.0\n2 @10 activity A\n3 @10 activity A\n4 @20 failed 3\n5 @20 timer 120\n6 @30 failed 2
             7 @30 timer 130\n8 @120 fired 5\n9 @120 activity A\n10 @130 fired 7\n11 @130 activity A"
                .to_string(),
            &["2 Activity A x2 10.. Running lane=0", "3 Activity A x2 10.. Running lane=1"],
        ),
    ] {
        assert_eq!(lines(&events, 5_000), expected, "{events}");
    }
}

#[test]
fn tries_are_listed_and_unfolded_on_request() {
    let text = "1 @0 started O 1.0.0\n2 @10 activity A\n3 @20 failed 2\n4 @20 timer 90\n5 @90 fired 4\n6 @90 activity A\n7 @95 ok 6";
    let tries: Vec<String> = fold(text, 100).spans[0]
        .tries
        .iter()
        .map(|one| format!("{} {}..{} {:?}", one.event_id, one.start_ms, one.end_ms.unwrap(), one.status))
        .collect();
    assert_eq!(tries, ["2 10..20 Failed", "6 90..95 Done"]);
    let mut options = TimelineOptions::default();
    options.folds_retries = false;
    assert_eq!(timeline(&history(text), 100, &options).spans.len(), 3);
}

#[test]
fn spans_of_one_lane_do_not_overlap() {
    let text = "1 @0 started O 1.0.0
        2 @10 activity A
        3 @10 activity B
        4 @20 ok 3
        5 @20 activity C
        6 @20 activity D
        7 @30 ok 2
        8 @30 activity E";
    let found = fold(text, 40);
    let lanes: Vec<(String, u32)> = found.spans.iter().map(|span| (span.name.clone(), span.lane)).collect();
    let expected = [("A", 0), ("B", 1), ("C", 1), ("D", 2), ("E", 0)];
    assert_eq!(lanes, expected.map(|(name, lane)| (name.to_string(), lane)));
    assert_eq!(found.lanes, 3);
}

#[test]
fn idle_gaps_are_long_and_without_a_running_activity() {
    let gaps = |text: &str, now| {
        let gaps = fold(text, now).gaps;
        gaps.iter().map(|gap| (gap.from_ms, gap.to_ms)).collect::<Vec<_>>()
    };
    let waits = "1 @0 started O 1.0.0\n2 @10 wait go\n3 @7000 event go\n4 @7000 activity A\n5 @9000 ok 4";
    assert_eq!(gaps(waits, 9_500), [(10, 7_000)], "the activity is no gap, and 500 ms are too short");
    assert_eq!(gaps(waits, 20_000), [(10, 7_000), (9_000, 20_000)], "up to the present");
    assert_eq!(gaps(&format!("{waits}\n6 @9000 completed"), 20_000), [(10, 7_000)], "an end has no present");
    assert_eq!(gaps("1 @0 started O 1.0.0\n2 @10 activity A", 60_000), [], "the activity runs");
    let long = "1 @0 started O 1.0.0\n2 @2000 wait go\n3 @100000 event go\n4 @100000 completed";
    assert_eq!(gaps(long, 0), [(2_000, 100_000)], "2 s are less than a twentieth of the axis");
    let tried = "1 @0 started O 1.0.0\n2 @0 activity A\n3 @2000 failed 2\n4 @2000 timer 9000\n5 @9000 fired 4\n6 @9000 activity A";
    assert_eq!(gaps(tried, 11_000), [(2_000, 9_000)], "between two tries no activity runs");
}

#[test]
fn bins_count_the_operations_of_equal_times() {
    let text =
        "1 @0 started O 1.0.0\n2 @0 activity A\n3 @39 ok 2\n4 @40 activity B\n5 @59 ok 4\n6 @99 completed";
    let mut options = TimelineOptions::default();
    options.bins = 5;
    assert_eq!(timeline(&history(text), 1_000, &options).bins, [1, 1, 1, 0, 0]);
    options.bins = 0;
    assert_eq!(timeline(&history(text), 1_000, &options).bins, [0; 0]);
    assert_eq!(fold(text, 0).bins.len(), 600);
    let empty = timeline(&[], 77, &options);
    assert_eq!((empty.from_ms, empty.to_ms, empty.spans.len()), (77, 77, 0));
}

/// A history of `count` activities, all of which ran one after the other.
fn chain(count: u64, name: impl Fn(u64) -> String) -> String {
    let mut text = "1 @0 started O 1.0.0\n".to_string();
    for index in 0..count {
        let (id, at) = (2 + index * 2, index * 10);
        text.push_str(&format!(
            "{id} @{at} activity {} input={index}\n{} @{} ok {id}\n",
            name(index),
            id + 1,
            at + 5
        ));
    }
    text
}

#[test]
fn many_spans_are_grouped_by_name_and_then_by_kind() {
    let few = fold(&chain(2_000, |_| "A".to_string()), 0);
    assert_eq!((few.is_grouped, few.spans.len()), (false, 2_000));
    let text = chain(2_001, |index| if index % 2 == 0 { "A".to_string() } else { "B".to_string() });
    let text = format!("{text}9000 @20010 activity B input=last\n9001 @20020 failed 9000\n");
    let many = fold(&text, 20_020);
    assert!(many.is_grouped);
    assert_eq!(
        many.spans.iter().map(line).collect::<Vec<_>>(),
        [
            "2 Activity A x1001 count=1001 0..20005 Done lane=0",
            "4 Activity B x1001 count=1001 10..20020 Failed lane=1"
        ]
    );
    let names = fold(&chain(2_001, |index| format!("A{index}")), 0);
    assert_eq!(
        names.spans.iter().map(line).collect::<Vec<_>>(),
        ["2 Activity - x2001 count=2001 0..20005 Done lane=0"]
    );
}
