//! Writes the figures into docs/performance.md, those on Cosmos DB into docs/cosmos.md, between two marks.

use super::row::Row;
use super::table;
use outlast_toolkit::page;

const BEGIN: &str = "<!-- figures of bench compare: written by `cargo xtask bench compare --paste` -->";
const END: &str = "<!-- end of the figures -->";

/// Replaces the figures of the page with the figures of these rows.
pub(super) fn into_page(page: &str, rows: &[Row]) -> Result<String, String> {
    page::between(page, (BEGIN, END), &block(rows))
}

/// The tables of the page.
fn block(rows: &[Row]) -> String {
    let rounds = rows.iter().map(|row| row.rounds).max().unwrap_or(0);
    let measured: String = table::all_measured(rows)
        .iter()
        .map(|(title, table)| format!("{title}:\n\n{}\n", table.markdown()))
        .collect();
    let counted = table::counted(rows);
    let counted = match counted.lines.is_empty() {
        true => String::new(),
        false => format!("\nCounted for Outlast at `FULL`:\n\n{}", counted.markdown()),
    };
    format!(
        "Medians of {rounds} rounds, with the lowest and the highest round; `!`: not all of the work was done.\n\n{}\
         The targets. A peer counts with its best round, which is more than the medians of both sides ask for.\n\n{}{counted}",
        measured,
        table::judged(rows).markdown(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    #[test]
    fn the_figures_take_the_place_of_the_old_ones() {
        let rows = [row("hello", "outlast FULL", "throughput", 6000.0)];
        let page = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let pasted = into_page(&page, &rows).unwrap();
        assert!(pasted.starts_with(&format!("before\n{BEGIN}\n\nMedians of 3 rounds")), "{pasted}");
        assert!(pasted.ends_with(&format!("|\n\n{END}\nafter\n")), "{pasted}");
        assert!(pasted.contains("6000 (3000..9000)") && !pasted.contains("old"), "{pasted}");
    }
}
