//! `tests/letters.rs` of the project of docs/guide/testing.md.

use super::library as letters;

// guide: tests
use letters::{course, letter, module};
use outlast::testing::{Test, days};

#[test]
fn a_course_takes_three_days_and_three_letters() {
    let run = Test::<course>::new(module())
        .mock::<letter>(|input| if input.to == "Ada" { Ok(()) } else { Err(format!("who is {}?", input.to)) })
        .run("Ada".into());
    assert_eq!((run.output(), run.elapsed()), (&3, days(3)));
    let inputs = run.calls::<letter>().inputs();
    assert_eq!(inputs.len(), 3);
    assert_eq!(inputs[2], letter::input("Ada".into(), "lesson 3".into()));
}
// guide: end
