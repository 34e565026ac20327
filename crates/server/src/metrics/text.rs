//! Writes the text format.

use std::fmt::{Display, Write};

/// The text so far.
#[derive(Default)]
pub(super) struct Text(String);

impl Text {
    /// A gauge with one value for each set of labels, such as `queue="worker"`.
    pub(super) fn gauge<L: Display>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) {
        self.head(name, "gauge", help);
        for (labels, value) in values {
            self.line(name, labels, value);
        }
    }

    pub(super) fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub(super) fn line(&mut self, name: &str, labels: impl Display, value: impl Display) {
        let labels = labels.to_string();
        let _ = match labels.is_empty() {
            true => writeln!(self.0, "{name} {value}"),
            false => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}
