//! The terminal of standard output.

use std::io::{self, IsTerminal};

/// The number of columns; `None` if standard output is not a terminal, or does not know its size.
pub(crate) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    columns().filter(|columns| *columns > 0)
}

#[cfg(unix)]
fn columns() -> Option<usize> {
    rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col))
}

#[cfg(not(unix))]
fn columns() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok()
}

/// Whether text may be coloured.
pub(crate) fn has_colours() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    let without = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !is_dumb && !without
}
