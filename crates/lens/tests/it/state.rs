//! The state at an event.

use crate::kit::history;
use outlast_lens::state_at;
use std::collections::BTreeMap;

#[test]
fn state_after_each_event_is_folded_from_the_prefix() {
    let history = history(
        "1 @0 started Order 1.0.0 status=new
         2 @10 set colour blue
         3 @20 activity Charge
         4 @30 status paying
         5 @40 ok 3
         6 @50 set size 7
         7 @60 clear colour
         8 @70 wait approve
         9 @80 clear-all
         10 @90 status
         11 @100 completed",
    );
    for (at, expected) in [
        (0, "0 @0 [kept=1] None []"),
        (1, "1 @0 [kept=1] Some(\"new\") []"),
        (2, "2 @10 [colour=blue, kept=1] Some(\"new\") []"),
        (3, "3 @20 [colour=blue, kept=1] Some(\"new\") [3]"),
        (4, "4 @30 [colour=blue, kept=1] Some(\"paying\") [3]"),
        (5, "5 @40 [colour=blue, kept=1] Some(\"paying\") []"),
        (6, "6 @50 [colour=blue, kept=1, size=7] Some(\"paying\") []"),
        (8, "8 @70 [kept=1, size=7] Some(\"paying\") [8]"),
        (9, "9 @80 [] Some(\"paying\") [8]"),
        (10, "10 @90 [] None [8]"),
        (11, "11 @100 [] None []"),
        (99, "11 @100 [] None []"),
    ] {
        let before = BTreeMap::from([("kept".to_string(), "1".to_string())]);
        let state = state_at(&history, at, &before);
        let kv: Vec<String> = state.kv.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let open: Vec<u64> = state.open.iter().map(|open| open.event_id).collect();
        let line = format!(
            "{} @{} [{}] {:?} {open:?}",
            state.event_id,
            state.at_ms,
            kv.join(", "),
            state.custom_status
        );
        assert_eq!(line, expected, "at {at}");
    }
}
