//! The conditions of a statement, and how each can be wrong.

use std::ops::Range;

use super::dialect::Dialect;
use super::tokens::Tokens;

/// One change of a statement.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) at: Range<usize>,
    pub(super) new: String,
    /// The line, the column and the description of the change.
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) what: String,
}

impl Change {
    pub(super) fn apply(&self, text: &str) -> String {
        [&text[..self.at.start], &self.new, &text[self.at.end..]].concat()
    }
}

/// A statement, and the changes that were found in it.
pub(super) struct Statement<'a> {
    pub(super) tokens: Tokens<'a>,
    dialect: Dialect,
    changes: Vec<Change>,
}

/// Words that end a condition.
const ENDS: &[&str] =
    &["GROUP", "ORDER", "LIMIT", "RETURNING", "UNION", "ON", "SET", "JOIN", "LEFT", "WHERE", ")", ";", ""];
/// Words that end a condition too, in PostgreSQL and in its functions.
const MORE_ENDS: &[&str] = &[
    "FOR", "OFFSET", "THEN", "LOOP", "CROSS", "INTO", "HAVING", "WINDOW", "ELSE", "END", "WHEN", "DO",
    "SELECT", "WITH", "UPDATE", "DELETE", "INSERT", "IF", "EXECUTE",
];

impl<'a> Statement<'a> {
    /// All conditions that are wrong: a condition always holds or never does, a limit is moved by one, either becomes both, the
    /// larger becomes the smaller.
    pub(super) fn of(text: &'a str, dialect: Dialect) -> Self {
        let mut statement = Self { tokens: Tokens::of(text), dialect, changes: Vec::new() };
        for at in 0..statement.tokens.count() {
            let (word, next) = (statement.tokens.word(at), statement.tokens.word(at + 1));
            match (word.as_str(), next.as_str()) {
                ("ON" | "WHERE", _) if statement.begins_condition(at) => statement.condition(at + 1),
                ("MAX", "(") => statement.replace(at, "min"),
                ("MIN", "(") => statement.replace(at, "max"),
                ("GREATEST", "(") => statement.replace(at, "least"),
                ("LEAST", "(") => statement.replace(at, "greatest"),
                ("IF" | "ELSIF" | "WHEN" | ":=", _) | ("RETURN", "EXISTS")
                    if dialect == Dialect::Postgres && statement.begins_condition(at) =>
                {
                    statement.condition(at + 1);
                }
                _ => {}
            }
        }
        statement
    }

    pub(super) fn changes(self) -> Vec<Change> {
        self.changes
    }

    fn begins_condition(&self, at: usize) -> bool {
        let before = self.tokens.before(at);
        match self.tokens.word(at).as_str() {
            "ON" => before != "DISTINCT" && self.tokens.word(at + 1) != "CONFLICT",
            "IF" => !matches!(before.as_str(), "END" | "TABLE" | "SCHEMA"),
            "WHEN" => before != "EXCEPTION",
            ":=" => self.is_truth(at + 1),
            _ => true,
        }
    }

    /// Whether an assigned value is a truth.
    fn is_truth(&self, from: usize) -> bool {
        let end = self.tokens.first_of(from, &[";"]);
        let truths = ["AND", "OR", "NOT", "EXISTS", "FOUND", "<", ">", "<=", ">=", "=", "<>"];
        let other = self.tokens.first_of(from, &["CASE", "SELECT"]);
        self.tokens.first_of(from, &truths) < end.min(other)
    }

    pub(super) fn replace(&mut self, token: usize, new: &str) {
        self.change(self.tokens.place(token..token + 1), new.to_string(), new);
    }

    /// Records a change, with its place and description.
    pub(super) fn change(&mut self, at: Range<usize>, new: String, told: &str) {
        let before = &self.tokens.text[..at.start];
        let was = self.tokens.text[at.clone()].split_whitespace().collect::<Vec<_>>().join(" ");
        self.changes.push(Change {
            line: before.matches('\n').count() + 1,
            column: at.start - before.rfind('\n').map_or(0, |end| end + 1) + 1,
            what: format!("replace {was} with {told}"),
            at,
            new,
        });
    }

    fn ends(&self, word: &str) -> bool {
        ENDS.contains(&word) || (self.dialect == Dialect::Postgres && MORE_ENDS.contains(&word))
    }

    /// Reads the condition that begins with this token: parts with AND or OR between them.
    fn condition(&mut self, from: usize) {
        let (mut at, mut begin, mut between) = (from, from, false);
        loop {
            let here = self.tokens.word(at);
            let ends = self.ends(&here);
            if ends || here == "OR" || (here == "AND" && !between) {
                self.part(begin..at);
                begin = at + 1;
            } else if here == ":=" {
                // The section of one form ends the statement of the other form with an assignment.
                begin = at + 1;
            } else if self.tokens.is_edge(at) && at > begin {
                self.part(begin..at);
                begin = at;
            }
            if ends {
                return;
            }
            if here == "OR" {
                self.replace(at, "AND");
            }
            between = here == "BETWEEN" || (between && here != "AND");
            at = match here.as_str() {
                "(" => self.tokens.closing(at) + 1,
                "CASE" => self.tokens.first_of(at, &["END"]) + 1,
                _ => at + 1,
            };
        }
    }

    /// Changes one part of a condition, and the parts of a group in parentheses.
    fn part(&mut self, within: Range<usize>) {
        if within.is_empty() || !self.tokens.is_whole(&within) {
            return;
        }
        let first = self.tokens.word(within.start);
        if self.tokens.word(within.end) == ":="
            || (within.len() == 1 && (first == "TRUE" || first == "FALSE"))
        {
            return;
        }
        let is_group = first == "(" && self.tokens.closing(within.start) + 1 == within.end;
        if is_group && self.tokens.word(within.start + 1) != "SELECT" {
            self.condition(within.start + 1);
        }
        let at = self.tokens.place(within.clone());
        let was = &self.tokens.text[at.clone()];
        // Its parameters stay in use: a statement with fewer would be refused for another reason.
        let (truth, lie) = self.dialect.truths();
        let (always, never) = (format!("({was} OR {truth})"), format!("({was} AND {lie})"));
        self.change(at.clone(), always, "true");
        self.change(at, never, "false");
        let mut token = within.start;
        while token < within.end {
            match self.tokens.word(token).as_str() {
                "<" => self.replace(token, "<="),
                "<=" => self.replace(token, "<"),
                ">" => self.replace(token, ">="),
                ">=" => self.replace(token, ">"),
                "(" => token = self.tokens.closing(token),
                _ => {}
            }
            token += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, dialect: Dialect) -> Vec<Change> {
        Statement::of(text, dialect).changes()
    }

    fn all(text: &str) -> Vec<String> {
        found(text, Dialect::Sqlite).iter().map(|change| change.apply(text)).collect()
    }

    #[test]
    fn each_condition_of_a_fence_is_changed() {
        let of =
            |condition: &str| format!("-- Deletes\n-- WHERE it counts.\nDELETE FROM t WHERE {condition}\n");
        let expected = [
            "(id = ?1 OR 1) AND until > ?2",
            "(id = ?1 AND 0) AND until > ?2",
            "id = ?1 AND (until > ?2 OR 1)",
            "id = ?1 AND (until > ?2 AND 0)",
            "id = ?1 AND until >= ?2",
        ];
        let text = of("id = ?1 AND until > ?2");
        assert_eq!(all(&text), expected.map(of));
        let changes = found(&text, Dialect::Sqlite);
        let last = &changes[4];
        assert_eq!((last.line, last.column, last.what.as_str()), (3, 39, "replace > with >="));
        assert_eq!(changes[2].what, "replace until > ?2 with true");
    }

    #[test]
    fn groups_and_subqueries_are_entered_and_assignments_are_not() {
        let text =
            "UPDATE t SET a = max(b, ?1) WHERE (c IS NULL OR d <= ?2) AND e IN (SELECT f FROM u WHERE g = 1)";
        let found = all(text);
        for expected in ["a = min(b", "(c IS NULL AND d", "(d <= ?2 OR 1)", "d < ?2", "WHERE (g = 1 AND 0))"]
        {
            assert!(found.iter().any(|text| text.contains(expected)), "{expected} is not in {found:#?}");
        }
        assert!(found.iter().all(|text| text.contains("SET a = m")), "{found:#?}");
    }

    #[test]
    fn a_statement_on_conflict_has_one_condition() {
        let text =
            "INSERT INTO t (a) VALUES (?1) ON CONFLICT (a) DO UPDATE SET b = 1 WHERE t.c BETWEEN ?2 AND ?3";
        assert_eq!(all(text).len(), 2);
        assert!(all(text)[0].ends_with("WHERE (t.c BETWEEN ?2 AND ?3 OR 1)"));
    }

    #[test]
    fn conditions_of_functions_are_changed_in_the_section_of_their_form() {
        let told = |text: &str| -> Vec<String> {
            let always =
                found(text, Dialect::Postgres).into_iter().filter(|change| change.what.ends_with("true"));
            always.map(|change| change.apply(text)).collect()
        };
        let text =
            "IF {batch}a > 0{end}{alone}b{end} THEN c := EXISTS (SELECT 1 FROM d) AND e; f := 1; END IF;";
        let expected = [
            "IF {batch}(a > 0 OR true){end}{alone}b{end} THEN c := EXISTS (SELECT 1 FROM d) AND e; f := 1; END IF;",
            "IF {batch}a > 0{end}{alone}(b OR true){end} THEN c := EXISTS (SELECT 1 FROM d) AND e; f := 1; END IF;",
            "IF {batch}a > 0{end}{alone}b{end} THEN c := (EXISTS (SELECT 1 FROM d) OR true) AND e; f := 1; END IF;",
            "IF {batch}a > 0{end}{alone}b{end} THEN c := EXISTS (SELECT 1 FROM d) AND (e OR true); f := 1; END IF;",
        ];
        assert_eq!(told(text), expected);
        let text = "{batch}SELECT a FROM b WHERE c AND{end}{alone}d := d AND{end} e = 0;";
        let expected = [
            "{batch}SELECT a FROM b WHERE (c OR true) AND{end}{alone}d := d AND{end} e = 0;",
            "{batch}SELECT a FROM b WHERE c AND{end}{alone}d := (d OR true) AND{end} e = 0;",
            "{batch}SELECT a FROM b WHERE c AND{end}{alone}d := d AND{end} (e = 0 OR true);",
        ];
        assert_eq!(told(text)[..3], expected);
    }
}
