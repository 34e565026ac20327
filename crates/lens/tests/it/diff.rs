//! Two histories side by side.

use crate::kit::{SECRET, history};
use outlast_lens::{Comparison, EventLine, diff};

const BASE: &str = "1 @0 started Order 1.0.0
    2 @10 activity Charge
    3 @20 ok 2
    4 @20 timer 5000
    5 @5000 fired 4
    6 @5000 child Deliver sub::6
    7 @5000 set colour blue
    8 @6000 completed";

fn changed(from: &str, to: &str) -> String {
    assert!(BASE.contains(from), "{from}");
    BASE.replace(from, to)
}

#[test]
fn first_difference_is_found_and_payloads_are_compared_apart() {
    let cases: Vec<(String, Option<usize>, Option<usize>)> = vec![
        (BASE.to_string(), None, None),
        (changed("@5000 fired", "@9000 fired").replace("timer 5000", "timer 9000"), None, None),
        (changed("Charge", "Charge input=other"), None, Some(2)),
        (changed("set colour blue", "set colour red"), None, Some(7)),
        (changed("set colour blue", "set size blue"), Some(7), None),
        (changed("activity Charge", "activity Refund"), Some(2), None),
        (changed("activity Charge", "activity Charge tag=gpu"), Some(2), None),
        (changed("Order 1.0.0", "Order 1.1.0"), Some(1), None),
        (changed("sub::6", "other"), Some(6), None),
        (changed("3 @20 ok 2", "3 @20 failed 2"), Some(3), None),
        (changed("Charge", "Charge input=other").replace("child Deliver", "child Post"), Some(6), Some(2)),
        (changed("8 @6000 completed", ""), Some(8), None),
        (changed("8 @6000 completed", "8 @6000 ended code"), Some(8), None),
    ];
    for (other, difference, payload) in cases {
        let (left, right) = (history(BASE), history(&other));
        for found in [diff(&left, &right), diff(&right, &left)] {
            assert_eq!(
                (found.first_difference, found.first_payload_difference),
                (difference, payload),
                "{other}"
            );
            assert_eq!(found.rows.len(), 8);
            assert!(!format!("{found:?}").contains(SECRET));
        }
    }
}

#[test]
fn rows_show_both_events_without_payloads() {
    let right = changed("child Deliver", "child Post");
    let found = diff(&history(BASE), &history(&right));
    let line = |line: &Option<EventLine>| {
        line.as_ref().map(|line| format!("{} {} {}", line.event_id, line.kind, line.details))
    };
    let row = &found.rows[5];
    assert_eq!(line(&row.left).unwrap(), "6 SubOrchestrationScheduled Deliver sub::6");
    assert_eq!(line(&row.right).unwrap(), "6 SubOrchestrationScheduled Post sub::6");
    assert_eq!(row.comparison, Comparison::Different);
    assert_eq!(found.rows[6].comparison, Comparison::Same);
}
