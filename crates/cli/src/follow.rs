//! `--follow`: reads again and again, and prints the changes.

use crate::args::Format;
use crate::failure::Failure;
use crate::output::write;
use crate::signals::Signals;
use crate::terminal;
use outlast::lens::counted;
use outlast::providers::{Interest, Provider};
use std::time::Duration;

/// The pause between two reads. A watch does not notice commits of other processes, so the store is read in between.
const PAUSE: Duration = Duration::from_millis(250);
/// The pause after a read that failed.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);
/// The number of failed reads in a row that are repeated: a server that restarts is back by then.
const MOST_FAILURES: u32 = 30;

/// The state after a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// There may be more to print.
    Continues,
    /// The last change is printed.
    Ended,
}

/// Repeats `step` until it reports the end, or until a signal stops the command: at each commit that the watch of the instance
/// reports, and after each pause. The watch begins before the read, so that a commit between read and pause is not missed.
///
/// The first read must work. A later read that finds the store unreachable or locked is repeated.
pub(crate) async fn follow(
    store: &dyn Provider,
    instance: Option<&str>,
    mut step: impl AsyncFnMut() -> Result<Step, Failure>,
) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let mut failures = MOST_FAILURES;
    loop {
        let watch = instance.and_then(|instance| store.watch_instance(instance, Interest::Any));
        let read = tokio::select! {
            biased;
            _ = signals.next() => return Err(Failure::stopped()),
            read = step() => read,
        };
        failures = match read {
            Ok(Step::Ended) => return Ok(()),
            Ok(Step::Continues) => 0,
            Err(failure) if failure.is_unavailable() && failures < MOST_FAILURES => failures + 1,
            Err(failure) => return Err(failure),
        };
        let pause = if failures == 0 { PAUSE } else { PAUSE_AFTER_FAILURE };
        tokio::select! {
            biased;
            _ = signals.next() => return Err(Failure::stopped()),
            _ = watch.unwrap_or_else(|| Box::pin(std::future::pending())) => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// An error for a format that cannot be printed in parts.
pub(crate) fn check_format(format: Format) -> Result<(), Failure> {
    match format {
        Format::Json => Err(Failure::usage(
            "--follow prints no single JSON document: use -o jsonl, which prints one object per line",
        )),
        Format::Table | Format::Jsonl => Ok(()),
    }
}

/// Prints texts that replace each other: over the earlier one on a terminal, after it elsewhere.
#[derive(Default)]
pub(crate) struct Redraw {
    is_drawn: bool,
}

impl Redraw {
    /// Whether texts are drawn over each other. Then a text may be printed to advance its times.
    pub(crate) fn is_in_place() -> bool {
        terminal::screen().is_some()
    }

    /// `is_last`: the text stays, so that it is printed whole.
    pub(crate) fn print(&mut self, text: &str, is_last: bool) -> Result<(), Failure> {
        let is_first = !std::mem::replace(&mut self.is_drawn, true);
        match terminal::screen() {
            Some((rows, columns)) => {
                let text = if is_last { text.to_string() } else { fitted(text, rows - 1, columns) };
                // Each line is cleared behind its text, and the screen after the last line: nothing flickers.
                let clear = if is_first { "\u{1b}[2J" } else { "" };
                write(&format!("{clear}\u{1b}[H{}\u{1b}[J", text.replace('\n', "\u{1b}[K\n")))
            }
            None if is_first => write(text),
            None => write(&format!("\n{text}")),
        }
    }
}

/// The lines that fit into the rows; the last row counts the lines that do not.
fn fitted(text: &str, rows: usize, columns: usize) -> String {
    let height = |line: &str| line.chars().count().div_ceil(columns).max(1);
    let lines: Vec<&str> = text.lines().collect();
    if lines.iter().map(|line| height(line)).sum::<usize>() <= rows {
        return text.to_string();
    }
    let mut used = 1;
    let shown = lines.iter().take_while(|line| {
        used += height(line);
        used <= rows
    });
    let shown = shown.count();
    let kept: String = lines[..shown].iter().map(|line| format!("{line}\n")).collect();
    format!("{kept}... {}\n", counted(lines.len() - shown, "more line"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_taller_than_the_screen_is_cut_and_counted() {
        let text = "a\nb\nc\nd\n";
        assert_eq!(fitted(text, 4, 80), text);
        assert_eq!(fitted(text, 3, 80), "a\nb\n... 2 more lines\n");
        assert_eq!(fitted(text, 1, 80), "... 4 more lines\n");
        assert_eq!(fitted("aaaaa\nb\nc\n", 3, 4), "aaaaa\n... 2 more lines\n", "a long line takes two rows");
        assert_eq!(fitted("", 3, 4), "");
    }
}
