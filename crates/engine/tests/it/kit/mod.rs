//! The test kit: a driver that stands for store and workers, constructors of messages, histories as text.

mod instance_driver;
mod message;
mod print;
mod stored;

pub(crate) use instance_driver::InstanceDriver;
pub(crate) use message::*;
pub(crate) use print::{event_line, normalise, output_text};
pub(crate) use stored::*;

/// Compares with a snapshot line by line, without indentation.
#[track_caller]
pub(crate) fn same(actual: &str, expected: &str) {
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| line.trim().to_string());
        lines.filter(|line| !line.is_empty()).collect()
    };
    let (actual, expected) = (lines(actual), lines(expected));
    assert!(
        actual == expected,
        "snapshot differs\n--- expected\n{}\n--- actual\n{}\n---",
        expected.join("\n"),
        actual.join("\n")
    );
}
