//! The terminal of standard output.

use std::io::{self, IsTerminal};

/// The number of columns; `None` if standard output is not a terminal, or does not know its size.
pub(crate) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    columns().filter(|columns| *columns > 0)
}

/// The number of rows and columns of a terminal that a text can be redrawn on; `None` if standard output is not such a terminal.
pub(crate) fn screen() -> Option<(usize, usize)> {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    if !io::stdout().is_terminal() || is_dumb {
        return None;
    }
    size().filter(|(rows, columns)| *rows > 1 && *columns > 0)
}

#[cfg(unix)]
fn size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some((usize::from(size.ws_row), usize::from(size.ws_col)))
}

#[cfg(not(unix))]
fn size() -> Option<(usize, usize)> {
    None
}

#[cfg(unix)]
fn columns() -> Option<usize> {
    size().map(|(_, columns)| columns)
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
