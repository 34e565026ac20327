//! SQL statements are in .sql files, where they can be reviewed and explained.
//!
//! A statement is not built at run time: values are parameters. The rule refuses a `format!` that is run as a statement, a
//! `format!` that contains a statement of ours, and text that is added to a statement.
//!
//! Statements that control a connection (`PRAGMA`, `BEGIN`, `COMMIT`, `ROLLBACK`, `SAVEPOINT`, `RELEASE`) are allowed.

use std::collections::BTreeSet;

use crate::metadata::source::find_words;
use crate::tidy::repo::{Finding, Repo};
use crate::tidy::tables::Sql;

/// Where a statement of ours is named: `sql::NAME`.
const OURS: &str = "sql::";

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let table = &repo.tables.sql;
    let mut findings = Vec::new();
    let is_exempt = |path: &str| table.exempt.iter().any(|folder| path.starts_with(folder));
    for (file, source) in repo.rust().filter(|(file, _)| !is_exempt(&file.path)) {
        let literals = source.literals.iter().filter(|literal| is_sql(table, &literal.text));
        let mut report = |offsets: BTreeSet<usize>, message: &str| {
            let shipped = offsets.into_iter().filter(|at| !file.is_test_at(*at));
            let lines: BTreeSet<usize> = shipped.map(|at| source.line(at)).collect();
            findings.extend(lines.into_iter().map(|line| file.finding(line, message)));
        };
        report(
            literals.map(|literal| literal.offset).collect(),
            "SQL belongs in a .sql file, see `include_str!`",
        );
        if !table.may_build.contains(&file.path) {
            report(
                built(table, &source.code),
                "a statement is not built at run time: pass values as parameters",
            );
        }
    }
    findings
}

/// The offsets where code runs a built text, or adds text to a statement.
fn built(table: &Sql, code: &str) -> BTreeSet<usize> {
    let starts = |text: &str, list: &[String]| list.iter().any(|start| text.starts_with(start.as_str()));
    let runs = table.run.iter().flat_map(|name| {
        // A method, or a function of ours by its path: not the end of another name.
        let calls = [format!(".{name}("), format!(":{name}(")];
        let found =
            calls.map(|call| code.match_indices(&call).map(|(at, _)| at + call.len()).collect::<Vec<_>>());
        found.into_iter().flatten()
    });
    let runs = runs.filter(|at| starts(code[*at..].trim_start().trim_start_matches('&'), &table.built));
    let formats = code.match_indices("format!(").map(|(at, found)| at + found.len());
    let formats = formats.filter(|at| find_words(arguments(&code[*at..]), OURS).next().is_some());
    let changes = code.match_indices(OURS).filter(|(at, found)| {
        let name = &code[at + found.len()..];
        let after = name.trim_start_matches(|char: char| char.is_ascii_uppercase() || char == '_');
        after.len() < name.len() && starts(after.trim_start(), &table.changed)
    });
    runs.chain(formats).chain(changes.map(|(at, _)| at)).collect()
}

/// Up to the closing parenthesis. Text and comments are blanked, so every parenthesis counts.
fn arguments(rest: &str) -> &str {
    let mut depth = 1;
    let end = rest.find(|char| {
        depth += i32::from(char == '(') - i32::from(char == ')');
        depth == 0
    });
    &rest[..end.unwrap_or(rest.len())]
}

/// Keywords count in upper case only: an error message may well start with "Delete".
fn is_sql(table: &Sql, literal: &str) -> bool {
    let text = literal.replace("\\n", " ").replace("\\t", " ").replace("\\\n", " ");
    let mut words =
        text.split_whitespace().map(|word| word.trim_matches(|char: char| !char.is_alphanumeric()));
    let has = |list: &[String], word: &str| list.iter().any(|listed| listed == word);
    words.next().is_some_and(|first| has(&table.first, first)) && words.any(|word| has(&table.later, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Repo::of(&[(path, text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn sql_statements_in_rust_files_are_refused() {
        for (text, expected) in [
            ("SELECT id FROM instances", &[2][..]),
            ("  INSERT INTO queue(id) VALUES (?)", &[2]),
            ("\\nUPDATE locks SET token = ?", &[2]),
            ("DELETE \\\n FROM events", &[2]),
            ("CREATE UNIQUE INDEX a ON b(c)", &[2]),
            ("WITH due AS (SELECT 1) TABLE due", &[2]),
            ("DROP TABLE a", &[2]),
            ("ALTER TABLE a ADD b", &[2]),
            ("PRAGMA journal_mode = WAL", &[]),
            ("BEGIN IMMEDIATE", &[]),
            ("SAVEPOINT a", &[]),
            ("ROLLBACK", &[]),
            ("Delete it FROM here", &[]),
            ("SELECT", &[]),
        ] {
            let code = format!("fn f() {{\nrun(\"{text}\");\n}}");
            assert_eq!(lines("crates/sqlite/src/a.rs", &code), expected, "{text}");
            assert_eq!(lines("crates/sqlite/tests/it/main.rs", &code), [0; 0]);
            assert_eq!(lines("crates/bench/src/main.rs", &code), [0; 0]);
        }
        assert_eq!(lines("crates/sqlite/src/a.rs", "const A: &str = r#\"\n SELECT \"a\"\n FROM b\"#;"), [1]);
        assert_eq!(lines("crates/sqlite/src/a.rs", "// \"SELECT 1 FROM a\""), [0; 0]);
        let sql = "run(\"SELECT 1 FROM a\")";
        let unit = format!("#[cfg(test)]\nmod tests {{ {sql} }}\n{sql}");
        assert_eq!(lines("crates/sqlite/src/a.rs", &unit), [3]);
    }

    #[test]
    fn statements_built_at_run_time_are_refused() {
        for (code, count) in [
            ("db.conn.query_row(&format!(\"{} {table}\", sql::COUNT.trim()), [], f)", 1),
            ("conn.prepare(\n    &format!(\"PRAGMA {name}\"))", 1),
            ("db.run(&format!(\"{a}{b}\"), ())", 1),
            ("sqlx::query(&format!(\"{a}\"))", 1),
            ("let text = format!(\"{} LIMIT {n}\", sql::LIST);", 1),
            ("let text = sql::LIST.replace(\"$schema\", schema);", 1),
            ("let text = sql::LIST.to_string() + more;", 1),
            ("db.run(sql::LIST, (a, b))", 0),
            ("names.iter().find(|name| format!(\"{name}\") == x)", 0),
            ("let text = format!(\"{} rows\", count);", 0),
            ("refuse(format!(\"a\"))", 0),
            ("db.one(sql::OUTCOME, [instance], |row| row.get(0))", 0),
        ] {
            assert_eq!(lines("crates/sqlite/src/a.rs", code).len(), count, "{code}");
            assert_eq!(lines("crates/sqlite/tests/it/a.rs", code), [0; 0], "{code}");
        }
    }
}
