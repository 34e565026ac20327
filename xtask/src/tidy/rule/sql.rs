//! SQL is not a string in a function: a statement in its own file is reviewed, explained and indexed on its own.
//!
//! What only steers a connection (`PRAGMA`, `BEGIN`, `COMMIT`, `ROLLBACK`, `SAVEPOINT`, `RELEASE`) is fine.

use crate::tidy::repo::{Finding, Repo};

const FIRST: &[&str] = &["SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "WITH", "DROP", "ALTER"];
const LATER: &[&str] = &[
    "FROM", "INTO", "SET", "TABLE", "INDEX", "VIEW", "TRIGGER", "SCHEMA", "FUNCTION", "VALUES", "WHERE",
    "AS", "SELECT",
];

/// Benchmarks speak to peers' databases in passing.
const EXEMPT: &[&str] = &["crates/bench/", "bench/"];

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in repo.rust() {
        if EXEMPT.iter().any(|folder| file.path.starts_with(folder)) {
            continue;
        }
        let shipped = source.literals.iter().filter(|literal| !file.is_test_at(literal.offset));
        for literal in shipped.filter(|literal| is_sql(&literal.text)) {
            findings.push(
                file.finding(source.line(literal.offset), "SQL belongs in a .sql file, see `include_str!`"),
            );
        }
    }
    findings
}

/// Keywords count in upper case only: an error message may well start with "Delete".
fn is_sql(literal: &str) -> bool {
    let text = literal.replace("\\n", " ").replace("\\t", " ").replace("\\\n", " ");
    let mut words =
        text.split_whitespace().map(|word| word.trim_matches(|char: char| !char.is_alphanumeric()));
    words.next().is_some_and(|first| FIRST.contains(&first)) && words.any(|word| LATER.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Repo::of(&[(path, text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn statements_are_refused() {
        let statements = [
            "SELECT id FROM instances",
            "  INSERT INTO queue(id) VALUES (?)",
            "\\nUPDATE locks SET token = ?",
            "DELETE \\\n FROM events",
            "CREATE UNIQUE INDEX a ON b(c)",
            "WITH due AS (SELECT 1) TABLE due",
            "DROP TABLE a",
            "ALTER TABLE a ADD b",
        ];
        for sql in statements {
            assert_eq!(
                lines("crates/sqlite/src/a.rs", &format!("fn f() {{\nrun(\"{sql}\");\n}}")),
                [2],
                "{sql}"
            );
        }
        assert_eq!(lines("crates/sqlite/src/a.rs", "const A: &str = r#\"\n SELECT \"a\"\n FROM b\"#;"), [1]);
    }

    #[test]
    fn control_statements_and_sentences_are_fine() {
        let fine = [
            "PRAGMA journal_mode = WAL",
            "BEGIN IMMEDIATE",
            "SAVEPOINT a",
            "ROLLBACK",
            "Delete it FROM here",
            "SELECT",
        ];
        for text in fine {
            assert_eq!(lines("crates/sqlite/src/a.rs", &format!("run(\"{text}\")")), [0; 0], "{text}");
        }
        assert_eq!(lines("crates/sqlite/src/a.rs", "// \"SELECT 1 FROM a\""), [0; 0]);
    }

    #[test]
    fn tests_and_benchmarks_are_exempt() {
        let sql = "run(\"SELECT 1 FROM a\")";
        assert_eq!(lines("crates/sqlite/tests/it/main.rs", sql), [0; 0]);
        assert_eq!(lines("crates/bench/src/main.rs", sql), [0; 0]);
        assert_eq!(
            lines("crates/sqlite/src/a.rs", &format!("#[cfg(test)]\nmod tests {{ {sql} }}\n{sql}")),
            [3]
        );
    }
}
