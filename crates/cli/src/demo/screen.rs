//! The display: a table that is redrawn in place, or plain lines without a terminal.

use super::board::{Board, News};
use super::goods::money;
use super::order::Ending;
use outlast::providers::{Clock, SystemClock};
use std::io::{self, IsTerminal, Stdout, Write};

/// The most open orders that the table shows.
const ROWS: usize = 12;
/// Without a terminal, batches of up to this number of orders print a line for each ended order.
const FEW: u32 = 200;
/// The interval at which the counts are printed without a terminal.
const COUNTS_EVERY_MS: u64 = 1_000;

/// Standard output.
pub(super) struct Screen {
    out: Stdout,
    look: Look,
    began_ms: u64,
    /// The number of table lines on the screen.
    drawn: usize,
    counted_ms: u64,
    /// The outcome of the latest order, for the table.
    latest: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Lines, without any escape code.
    Plain,
    /// A table in place, with colours or without.
    InPlace { colours: bool },
}

impl Screen {
    pub(super) fn new() -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let look = match io::stdout().is_terminal() && !is_dumb {
            true => Look::InPlace { colours: !set("NO_COLOR") },
            false => Look::Plain,
        };
        let now = SystemClock.now_ms();
        Self { out: io::stdout(), look, began_ms: now, drawn: 0, counted_ms: now, latest: String::new() }
    }

    /// Prints lines above the table.
    pub(super) fn print(&mut self, text: &str) -> io::Result<()> {
        let erased = self.erase();
        self.write(&format!("{erased}{text}\n"))
    }

    /// An order has ended.
    pub(super) fn ended(&mut self, news: &News, board: &Board) -> io::Result<()> {
        let (word, note) = match &news.ended {
            Ok(outcome) => (word(outcome.ending), outcome.note.as_str()),
            Err(error) => ("FAILED", error.as_str()),
        };
        self.latest = format!(
            "{}  {:<7} {:>8}  {word:<12}  {note} ({:.1} s)",
            news.order,
            news.was.customer,
            money(news.was.cents),
            seconds(news.took_ms)
        );
        match self.look {
            Look::Plain if board.batch.orders <= FEW => self.write(&format!("  {}\n", self.latest)),
            _ => Ok(()),
        }
    }

    /// Redraws the table or prints the counts.
    pub(super) fn show(&mut self, board: &Board) -> io::Result<()> {
        let now = SystemClock.now_ms();
        match self.look {
            Look::InPlace { .. } => {
                let lines = self.table(board);
                let erased = self.erase();
                self.drawn = lines.len();
                // Without line wrapping a narrow window truncates lines instead of wrapping them.
                self.write(&format!("{erased}\x1b[?7l{}\n\x1b[?7h", lines.join("\n")))
            }
            Look::Plain if now.saturating_sub(self.counted_ms) >= COUNTS_EVERY_MS || board.is_done() => {
                self.counted_ms = now;
                self.write(&format!("{}\n", self.counts(board)))
            }
            Look::Plain => Ok(()),
        }
    }

    fn counts(&self, board: &Board) -> String {
        let delivered = board.count(Ending::Delivered);
        format!(
            "{:>5.1} s  placed {:>2} of {}, open {:>2}, delivered {:>2}, undone {:>2}",
            seconds(SystemClock.now_ms().saturating_sub(self.began_ms)),
            board.placed_count(),
            board.batch.orders,
            board.open.len(),
            delivered,
            board.ended.len() - delivered
        )
    }

    fn table(&self, board: &Board) -> Vec<String> {
        let mut lines = vec![self.bar(board), self.paint("1", &self.counts(board)), String::new()];
        for (id, open) in board.open.iter().take(ROWS) {
            let step = if open.step.is_empty() { "is queued" } else { open.step.as_str() };
            let row = format!("  {id}  {:<7} {:>8}  {step}", open.customer, money(open.cents));
            let colour = match step {
                super::order::AWAITS_APPROVAL => "33",
                "is undone" | "tells the customer" => "31",
                _ => "0",
            };
            lines.push(self.paint(colour, &row));
        }
        if board.open.len() > ROWS {
            lines.push(format!("  and {} more", board.open.len() - ROWS));
        }
        // The table always has the same height, so that the screen does not jump.
        lines.resize(ROWS + 4, String::new());
        lines.push(self.paint("2", &format!("  latest: {}", self.latest)));
        lines
    }

    fn bar(&self, board: &Board) -> String {
        const WIDTH: usize = 60;
        let total = (board.batch.orders as usize).max(1);
        let (done, open) = (board.ended.len() * WIDTH / total, board.open.len() * WIDTH / total);
        let rest = WIDTH.saturating_sub(done + open);
        format!("[{}{}{}]", self.paint("32", &"#".repeat(done)), "+".repeat(open), " ".repeat(rest))
    }

    fn paint(&self, code: &str, text: &str) -> String {
        match self.look {
            Look::InPlace { colours: true } => format!("\x1b[{code}m{text}\x1b[0m"),
            _ => text.to_string(),
        }
    }

    /// The escape codes that erase the table.
    fn erase(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\x1b[J"),
        }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

/// A short word for an outcome.
pub(super) fn word(ending: Ending) -> &'static str {
    match ending {
        Ending::Delivered => "delivered",
        Ending::OutOfStock => "out of stock",
        Ending::NotApproved => "not approved",
        Ending::NotPaid => "not paid",
        Ending::Broken => "broken",
        Ending::Cancelled => "cancelled",
    }
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}
