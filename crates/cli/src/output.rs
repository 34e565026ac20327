//! Prints results as text or JSON.

use crate::args::Format;
use crate::failure::Failure;
use serde::Serialize;
use std::io::{self, Write};

/// Prints a value as JSON, or as the text that `text` makes of it.
pub(crate) fn print<T: Serialize>(
    format: Format,
    value: &T,
    text: impl FnOnce(&T) -> String,
) -> Result<(), Failure> {
    let text = match format {
        Format::Table => text(value),
        Format::Json => {
            serde_json::to_string_pretty(value).map_err(|error| Failure::new(error.to_string()))? + "\n"
        }
        Format::Jsonl => line(value)?,
    };
    write(&text)
}

/// Prints a list. As lines of JSON it is one line for each element, and a last line with the mark of the next page if there is one.
pub(crate) fn print_list<T: Serialize, E: Serialize>(
    format: Format,
    value: &T,
    elements: &[E],
    next: Option<&str>,
    text: impl FnOnce(&T) -> String,
) -> Result<(), Failure> {
    if format != Format::Jsonl {
        return print(format, value, text);
    }
    let mut lines = elements.iter().map(line).collect::<Result<String, Failure>>()?;
    if let Some(next) = next {
        lines += &line(&serde_json::json!({ "next": next }))?;
    }
    write(&lines)
}

/// A value as a line of JSON.
pub(crate) fn line(value: &impl Serialize) -> Result<String, Failure> {
    Ok(serde_json::to_string(value).map_err(|error| Failure::new(error.to_string()))? + "\n")
}

pub(crate) fn write(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// A table whose columns have the width of their longest cell. The last column is not padded.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut columns = Columns::new(header, &[]);
    columns.widen(rows);
    columns.header() + &columns.rows(rows)
}

/// A table that is printed in parts. A column becomes wider with its longest cell, and never narrower.
pub(crate) struct Columns {
    header: Vec<String>,
    widths: Vec<usize>,
}

impl Columns {
    /// `widths`: the first widths of the first columns.
    pub(crate) fn new(header: &[&str], widths: &[usize]) -> Self {
        let header: Vec<String> = header.iter().map(|cell| cell.to_string()).collect();
        let given = widths.iter().copied().chain(std::iter::repeat(0));
        let widths = header.iter().zip(given).map(|(cell, width)| cell.chars().count().max(width)).collect();
        Self { header, widths }
    }

    fn widen(&mut self, rows: &[Vec<String>]) {
        for row in rows {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
    }

    pub(crate) fn header(&self) -> String {
        self.line(&self.header)
    }

    pub(crate) fn rows(&mut self, rows: &[Vec<String>]) -> String {
        self.widen(rows);
        rows.iter().map(|row| self.line(row)).collect()
    }

    fn line(&self, cells: &[String]) -> String {
        let cells = cells.iter().zip(&self.widths);
        let padded: String = cells.map(|(cell, width)| format!("{cell:<width$}  ")).collect();
        format!("{}\n", padded.trim_end())
    }
}

/// Text from the store on one line: control characters are escaped, so that they cannot move the cursor of the terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .flat_map(|char| match char.is_control() {
            true => char.escape_default().collect::<Vec<_>>(),
            false => vec![char],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [vec!["a".to_string(), "x".to_string()], vec!["long".to_string(), String::new()]];
        assert_eq!(table(&["ID", "STATUS"], &rows), "ID    STATUS\na     x\nlong\n");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(plain("a\n\u{1b}[31mü"), "a\\n\\u{1b}[31mü");
    }
}
