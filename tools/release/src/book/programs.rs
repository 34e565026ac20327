//! Every Rust block of the book is compiled by a test of this repository, and every SQL block is executed by a test of a store.
//!
//! A block is copied from a source file (`<!-- code: .. -->`, which tidy compares), or its page is read by a test or by the
//! documentation of a crate (`include_str!`), or it is a step of another engine's program in a [left column](LEFT), or [`ELSEWHERE`] says
//! why no test can.

use outlast_toolkit::{files, process};

use super::{pages, summary};

/// Pages, a text of a block, and the reason why this repository does not compile the block.
const ELSEWHERE: [(&str, &str, &str); 3] = [
    (
        "CONTRIBUTING.md",
        "struct Approval;",
        "an operation that does not exist; recipe.rs of the engine compares it with the code",
    ),
    ("docs/observability.md", "http.post(url)", "any HTTP client"),
    (
        "docs/observability.md",
        "metrics_exporter_prometheus",
        "an exporter that the program depends on itself",
    ),
];

/// The line above the left column of a table with two programs. A program in this column that a test compiles is copied from a source.
const LEFT: &str = "<tr valign=\"top\"><td>";

/// The text between these marks names the page that a test reads.
const READ: [&str; 2] = ["include_str!(\"", "\")"];

/// The paths that Rust files of the repository read with `include_str!`.
fn read_by_tests() -> Vec<String> {
    let mut read = Vec::new();
    for path in process::files().unwrap().iter().filter(|path| path.ends_with(".rs")) {
        let Ok(text) = files::read(&process::root().join(path)) else { continue };
        let links = text.split(READ[0]).skip(1).filter_map(|rest| rest.split(READ[1]).next());
        read.extend(links.filter(|link| link.ends_with(".md")).filter_map(|link| pages::resolve(path, link)));
    }
    read
}

/// The lines of Rust and SQL blocks that no comment names a source of, with their first lines.
fn uncopied(page: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = page.lines().collect();
    let starts = lines.iter().enumerate().filter(|(_, line)| is_tested(line.trim_start()));
    let is_copied = |at: usize| at > 0 && lines[at - 1].starts_with("<!-- code: ");
    let is_left = |at: usize| at > 1 && lines[at - 1].is_empty() && lines[at - 2] == LEFT;
    let block = |at: usize| lines[at + 1..].iter().take_while(|line| line.trim() != "```").copied();
    starts
        .filter(|(at, _)| !is_copied(*at) && !is_left(*at))
        .map(|(at, _)| (at + 1, block(at).collect::<Vec<_>>().join("\n")))
        .collect()
}

fn is_tested(fence: &str) -> bool {
    ["```rust", "```sql"].iter().any(|language| fence.starts_with(language))
}

#[test]
fn every_rust_and_sql_block_of_the_book_is_compiled_or_executed_by_a_test() {
    let read = read_by_tests();
    let mut untested = Vec::new();
    for path in process::files().unwrap().into_iter().filter(|path| summary::is_page(path)) {
        let Ok(page) = files::read(&process::root().join(&path)) else { continue };
        let is_elsewhere =
            |code: &str| ELSEWHERE.iter().any(|(page, text, _)| *page == path && code.contains(text));
        let blocks = uncopied(&page).into_iter().filter(|(_, code)| !is_elsewhere(code));
        let blocks = blocks.filter(|_| !read.contains(&path));
        untested.extend(blocks.map(|(line, _)| format!("{path}:{line}")));
    }
    assert_eq!(untested, [""; 0], "no test compiles or executes these blocks");
    for (page, text, _) in ELSEWHERE {
        let page = files::read(&process::root().join(page)).unwrap();
        assert!(uncopied(&page).iter().any(|(_, code)| code.contains(text)), "no block has `{text}`");
    }
}

#[test]
fn copied_blocks_are_told_from_others() {
    let page = "<!-- code: a.rs#b -->\n```rust\na\n```\n\n```rust,no_run\nb\nc\n```\n```toml\n```";
    assert_eq!(uncopied(page), [(6, "b\nc".to_string())]);
    let columns = format!("{LEFT}\n\n```rust\na\n```\n\n</td><td>\n\n```rust\nb\n```\n");
    assert_eq!(uncopied(&columns), [(9, "b".to_string())]);
}
