//! What can be wrong in a statement beside its conditions: locks, orders, limits, sums, assignments, and steps of functions.

use std::ops::Range;

use super::conditions::Statement;

/// Words that end the first key of an order.
const ORDER_ENDS: &[&str] =
    &[",", ")", ";", "LIMIT", "OFFSET", "FOR", "ROWS", "NULLS", "DESC", "ON", "LOOP", "UNION", "RETURNING"];
/// Words that end a limit.
const LIMIT_ENDS: &[&str] = &[",", ")", ";", "OFFSET", "FOR", "ON"];
/// Words that end a list of assignments.
const SET_ENDS: &[&str] = &["FROM", "{FROM M}", "WHERE", "RETURNING", ";", ")"];
/// Words before the first word of a step of a function.
const STEP_BEGINS: &[&str] = &[";", "THEN", "ELSE", "LOOP", "BEGIN"];

/// Adds the changes: a lock is not taken, an order is reversed, one row more is read, a sum becomes a difference, an assignment or a
/// step of a function is left out.
pub(super) fn add(statement: &mut Statement<'_>) {
    for at in 0..statement.tokens.count() {
        let (word, next) = (statement.tokens.word(at), statement.tokens.word(at + 1));
        match (word.as_str(), next.as_str()) {
            ("FOR", "UPDATE" | "SHARE") => lock(statement, at),
            ("ORDER", "BY") => order(statement, at + 2),
            ("LIMIT", _) => limit(statement, at + 1),
            ("SET", _) => assignments(statement, at + 1),
            ("+" | "-", _) => sum(statement, at),
            ("PERFORM" | "INSERT", _) if begins_step(statement, at) => step(statement, at),
            (":=", _) => {
                if let Some(target) = target(statement, at) {
                    step(statement, target);
                }
            }
            _ => {}
        }
    }
}

/// `FOR UPDATE OF q SKIP LOCKED` as a whole, and its last two words.
fn lock(statement: &mut Statement<'_>, at: usize) {
    let mut end = at + 2;
    if statement.tokens.word(end) == "OF" {
        end += 2;
    }
    let skips = statement.tokens.word(end) == "SKIP";
    if skips {
        remove(statement, end..end + 2);
        end += 2;
    }
    remove(statement, at..end);
}

/// The first key of an order is reversed.
fn order(statement: &mut Statement<'_>, from: usize) {
    let end = statement.tokens.first_of(from, ORDER_ENDS);
    if statement.tokens.word(end) == "DESC" {
        remove(statement, end..end + 1);
    } else if end > from && statement.tokens.is_whole(&(from..end)) {
        let at = statement.tokens.place(from..end);
        let was = statement.tokens.text[at.clone()].to_string();
        statement.change(at, format!("{was} DESC"), "the reverse order");
    }
}

/// One row more. A limit of 1 says that there is one row, and keeps the planner from a join.
fn limit(statement: &mut Statement<'_>, from: usize) {
    let end = statement.tokens.first_of(from, LIMIT_ENDS);
    if end > from && statement.tokens.word(from) != "1" && statement.tokens.is_whole(&(from..end)) {
        let at = statement.tokens.place(from..end);
        let new = format!("({}) + 1", &statement.tokens.text[at.clone()]);
        statement.change(at, new.clone(), &new);
    }
}

/// Each assignment of a list is left out, unless it is the only one.
fn assignments(statement: &mut Statement<'_>, from: usize) {
    let end = statement.tokens.first_of(from, SET_ENDS);
    let mut items: Vec<Range<usize>> = Vec::new();
    let mut at = from;
    while at < end {
        let comma = statement.tokens.first_of(at, &[","]).min(end);
        items.push(at..comma);
        at = comma + 1;
    }
    if items.len() < 2 || !statement.tokens.is_whole(&(from..end)) {
        return;
    }
    for (nth, item) in items.iter().enumerate() {
        let at = statement.tokens.place(item.clone());
        let rest = if nth == 0 {
            at.start..statement.tokens.place(items[1].clone()).start
        } else {
            statement.tokens.place(items[nth - 1].clone()).end..at.end
        };
        statement.change(rest, String::new(), "nothing");
    }
}

/// A sum becomes a difference. `+ 0` keeps the planner from an index, and the seeds of locks need not be numbers in order.
fn sum(statement: &mut Statement<'_>, at: usize) {
    let is_value = |word: &str| {
        let first = word.chars().next().unwrap_or(' ');
        (first.is_alphanumeric() || matches!(first, '_' | ')' | ']' | '{' | '$'))
            && !["THEN", "ELSE", "SELECT", "WHEN", "AND", "OR", "RETURN", "LIMIT"].contains(&word)
    };
    let before = statement.tokens.before(at);
    if is_value(&before) && before != "{SEED}" && statement.tokens.word(at + 1) != "0" {
        let new = if statement.tokens.word(at) == "+" { "-" } else { "+" };
        statement.replace(at, new);
    }
}

/// A step of a function does nothing.
fn step(statement: &mut Statement<'_>, from: usize) {
    let end = statement.tokens.first_of(from, &[";"]);
    let within = from..end;
    if end < statement.tokens.count() && statement.tokens.is_whole(&within) {
        statement.change(statement.tokens.place(within), "NULL".to_string(), "NULL");
    }
}

fn begins_step(statement: &Statement<'_>, at: usize) -> bool {
    STEP_BEGINS.contains(&statement.tokens.before(at).as_str())
}

/// The variable of an assignment that is a step, not a declaration.
fn target(statement: &Statement<'_>, at: usize) -> Option<usize> {
    let mut first = at.checked_sub(1)?;
    if statement.tokens.word(first) == "]" {
        first = first.checked_sub(3)?;
    }
    begins_step(statement, first).then_some(first)
}

fn remove(statement: &mut Statement<'_>, within: Range<usize>) {
    statement.change(statement.tokens.place(within), String::new(), "nothing");
}

#[cfg(test)]
mod tests {
    use crate::statements::dialect::Dialect;

    /// The results of the changes that are none of a condition.
    fn all(text: &str) -> Vec<String> {
        let changes = Dialect::Postgres.changes("crates/postgres/migrations/functions/f.sql", text);
        changes
            .iter()
            .map(|change| change.apply(text))
            .filter(|made| !made.contains("true") && !made.contains("false"))
            .collect()
    }

    #[test]
    fn locks_orders_and_limits_are_left_out_reversed_and_moved() {
        let text = "SELECT a FROM t ORDER BY f(a, b), c LIMIT $1 FOR UPDATE OF t SKIP LOCKED;";
        let expected = [
            "SELECT a FROM t ORDER BY f(a, b) DESC, c LIMIT $1 FOR UPDATE OF t SKIP LOCKED;",
            "SELECT a FROM t ORDER BY f(a, b), c LIMIT ($1) + 1 FOR UPDATE OF t SKIP LOCKED;",
            "SELECT a FROM t ORDER BY f(a, b), c LIMIT $1 ;",
            "SELECT a FROM t ORDER BY f(a, b), c LIMIT $1 FOR UPDATE OF t ;",
        ];
        assert_eq!(all(text), expected);
        assert_eq!(all("SELECT a FROM t ORDER BY a DESC LIMIT 1"), ["SELECT a FROM t ORDER BY a  LIMIT 1"]);
    }

    #[test]
    fn assignments_and_steps_are_left_out() {
        let text = "UPDATE t SET a = b + 1, c = f(d, 0) WHERE x";
        let expected = [
            "UPDATE t SET c = f(d, 0) WHERE x",
            "UPDATE t SET a = b - 1, c = f(d, 0) WHERE x",
            "UPDATE t SET a = b + 1 WHERE x",
        ];
        assert_eq!(all(text), expected);
        let text = "AS $$ DECLARE v_a integer := 1; BEGIN v_a := 2; v_b[v_a] := 3; PERFORM f(v_a); END $$";
        let expected = [
            "AS $$ DECLARE v_a integer := 1; BEGIN NULL; v_b[v_a] := 3; PERFORM f(v_a); END $$",
            "AS $$ DECLARE v_a integer := 1; BEGIN v_a := 2; NULL; PERFORM f(v_a); END $$",
            "AS $$ DECLARE v_a integer := 1; BEGIN v_a := 2; v_b[v_a] := 3; NULL; END $$",
        ];
        assert_eq!(all(text), expected);
    }
}
