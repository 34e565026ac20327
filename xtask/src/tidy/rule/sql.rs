//! SQL statements are in .sql files, where they can be reviewed and explained.
//!
//! A statement is not built at run time: values are parameters. The rule refuses a `format!` that is run as a statement, a
//! `format!` that contains a statement of ours, and text that is added to a statement.
//!
//! Statements that control a connection (`PRAGMA`, `BEGIN`, `COMMIT`, `ROLLBACK`, `SAVEPOINT`, `RELEASE`) are allowed.

use std::collections::BTreeSet;

use crate::tidy::repo::{Finding, Repo};
use crate::tidy::source::find_words;

const FIRST: &[&str] = &["SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "WITH", "DROP", "ALTER"];
const LATER: &[&str] = &[
    "FROM", "INTO", "SET", "TABLE", "INDEX", "VIEW", "TRIGGER", "SCHEMA", "FUNCTION", "VALUES", "WHERE",
    "AS", "SELECT",
];

/// Benchmarks read databases of peers, and fuzz targets damage tables of any shape.
const EXEMPT: &[&str] = &["crates/bench/", "crates/fuzz/", "bench/"];

/// Calls that run their first argument, or prepare it.
const RUN: &[&str] = &[
    "prepare(",
    "prepare_cached(",
    "execute(",
    "execute_batch(",
    "query(",
    "query_row(",
    "query_one(",
    "query_as(",
    "query_scalar(",
    "batch_execute(",
    "simple_query(",
    "statement(",
    "control(",
    "run(",
    "run_exactly(",
    "one(",
    "all(",
    "find(",
];

/// Expressions that build a text.
const BUILT: &[&str] = &["format!(", "concat!(", "String::from("];

/// Files that may run a built text, with the reason.
const BUILT_ALLOWED: &[(&str, &str)] =
    &[("crates/sqlite/src/open.rs", "a PRAGMA takes no parameters; its name and value are ours")];

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
        if BUILT_ALLOWED.iter().any(|(path, _)| *path == file.path) {
            continue;
        }
        let built = built(&source.code).into_iter().filter(|at| !file.is_test_at(*at));
        let built: BTreeSet<usize> = built.map(|at| source.line(at)).collect();
        let message = "a statement is not built at run time: pass values as parameters";
        findings.extend(built.into_iter().map(|line| file.finding(line, message)));
    }
    findings
}

/// The offsets where code runs a built text, or adds text to a statement.
fn built(code: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for call in RUN {
        for (at, _) in code.match_indices(call) {
            // A method, or a function of ours by its path: not the end of another name.
            let is_call = code[..at].ends_with(['.', ':']);
            let argument = code[at + call.len()..].trim_start().trim_start_matches('&');
            let first_built = BUILT.iter().any(|built| argument.starts_with(built));
            if is_call && first_built {
                found.push(at);
            }
        }
    }
    for (at, _) in code.match_indices("format!(") {
        let arguments = arguments(&code[at + "format!(".len()..]);
        if find_words(arguments, "sql::").next().is_some() {
            found.push(at);
        }
    }
    for (at, _) in code.match_indices("sql::") {
        let name = code[at + 5..].split(|char: char| !(char.is_ascii_uppercase() || char == '_')).next();
        let after = name.map(|name| code[at + 5 + name.len()..].trim_start());
        let changed = [".replace", ".to_string", ".to_owned", ".into()", "+ "];
        if name.is_some_and(|name| !name.is_empty())
            && after.is_some_and(|after| changed.iter().any(|change| after.starts_with(change)))
        {
            found.push(at);
        }
    }
    found
}

/// Up to the closing parenthesis. Text and comments are blanked, so every parenthesis counts.
fn arguments(rest: &str) -> &str {
    let mut depth = 1;
    let end = rest.char_indices().find(|(_, char)| {
        match char {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    end.map_or(rest, |(at, _)| &rest[..at])
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
    fn sql_statements_in_rust_files_are_refused() {
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
    fn control_statements_and_sentences_are_accepted() {
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
    fn statements_built_at_run_time_are_refused() {
        let refused = [
            "db.conn.query_row(&format!(\"{} {table}\", sql::COUNT.trim()), [], f)",
            "conn.prepare(\n    &format!(\"PRAGMA {name}\"))",
            "db.run(&format!(\"{a}{b}\"), ())",
            "sqlx::query(&format!(\"{a}\"))",
            "let text = format!(\"{} LIMIT {n}\", sql::LIST);",
            "let text = sql::LIST.replace(\"$schema\", schema);",
            "let text = sql::LIST.to_string() + more;",
        ];
        for code in refused {
            assert_eq!(lines("crates/sqlite/src/a.rs", code).len(), 1, "{code}");
            assert_eq!(lines("crates/sqlite/tests/it/a.rs", code), [0; 0], "{code}");
        }
        let fine = [
            "db.run(sql::LIST, (a, b))",
            "names.iter().find(|name| format!(\"{name}\") == x)",
            "let text = format!(\"{} rows\", count);",
            "refuse(format!(\"a\"))",
            "db.one(sql::OUTCOME, [instance], |row| row.get(0))",
        ];
        for code in fine {
            assert_eq!(lines("crates/sqlite/src/a.rs", code), [0; 0], "{code}");
        }
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
