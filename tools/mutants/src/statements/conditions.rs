//! The conditions of a statement, and how each can be wrong.

use std::ops::Range;

/// One change of a statement.
#[derive(Debug)]
pub(super) struct Change {
    at: Range<usize>,
    new: String,
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

/// All changes of a statement: a condition always holds or never does, a limit is moved by one, either becomes both,
/// the larger becomes the smaller.
pub(super) fn changes(text: &str) -> Vec<Change> {
    let mut statement = Statement { text, tokens: tokens(text), changes: Vec::new() };
    for at in 0..statement.tokens.len() {
        match (statement.word(at).as_str(), statement.word(at + 1).as_str()) {
            ("ON", "CONFLICT") => {}
            ("ON" | "WHERE", _) => statement.condition(at + 1),
            ("MAX", "(") => statement.replace(at, "min"),
            ("MIN", "(") => statement.replace(at, "max"),
            _ => {}
        }
    }
    statement.changes
}

struct Statement<'a> {
    text: &'a str,
    tokens: Vec<Range<usize>>,
    changes: Vec<Change>,
}

/// Words that end a condition.
const ENDS: &[&str] =
    &["GROUP", "ORDER", "LIMIT", "RETURNING", "UNION", "ON", "SET", "JOIN", "LEFT", "WHERE", ")", ";", ""];

impl Statement<'_> {
    fn word(&self, at: usize) -> String {
        self.tokens.get(at).map(|token| self.text[token.clone()].to_ascii_uppercase()).unwrap_or_default()
    }

    fn replace(&mut self, token: usize, new: &str) {
        self.change(self.tokens[token].clone(), new.to_string(), new);
    }

    /// Records a change, with its place and description.
    fn change(&mut self, at: Range<usize>, new: String, told: &str) {
        let before = &self.text[..at.start];
        let was = self.text[at.clone()].split_whitespace().collect::<Vec<_>>().join(" ");
        self.changes.push(Change {
            line: before.matches('\n').count() + 1,
            column: at.start - before.rfind('\n').map_or(0, |end| end + 1) + 1,
            what: format!("replace {was} with {told}"),
            at,
            new,
        });
    }

    /// Reads the condition that begins with this token: parts with AND or OR between them.
    fn condition(&mut self, from: usize) {
        let (mut at, mut begin, mut between) = (from, from, false);
        loop {
            let here = self.word(at);
            let ends = ENDS.contains(&here.as_str());
            if ends || here == "OR" || (here == "AND" && !between) {
                self.part(begin..at);
                begin = at + 1;
            }
            if ends {
                return;
            }
            if here == "OR" {
                self.replace(at, "AND");
            }
            between = here == "BETWEEN" || (between && here != "AND");
            at = if here == "(" { self.closing(at) + 1 } else { at + 1 };
        }
    }

    /// Changes one part of a condition, and the parts of a group in parentheses.
    fn part(&mut self, within: Range<usize>) {
        if within.is_empty() {
            return;
        }
        let is_group = self.word(within.start) == "(" && self.closing(within.start) + 1 == within.end;
        if is_group && self.word(within.start + 1) != "SELECT" {
            self.condition(within.start + 1);
        }
        let at = self.tokens[within.start].start..self.tokens[within.end - 1].end;
        let was = &self.text[at.clone()];
        // Its parameters stay in use: a statement with fewer would be refused for another reason.
        let (always, never) = (format!("({was} OR 1)"), format!("({was} AND 0)"));
        self.change(at.clone(), always, "true");
        self.change(at, never, "false");
        let mut token = within.start;
        while token < within.end {
            match self.word(token).as_str() {
                "<" => self.replace(token, "<="),
                "<=" => self.replace(token, "<"),
                ">" => self.replace(token, ">="),
                ">=" => self.replace(token, ">"),
                "(" => token = self.closing(token),
                _ => {}
            }
            token += 1;
        }
    }

    /// The parenthesis that closes this one.
    fn closing(&self, open: usize) -> usize {
        let mut depth = 0;
        for (at, token) in self.tokens.iter().enumerate().skip(open) {
            match &self.text[token.clone()] {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return at;
            }
        }
        self.tokens.len()
    }
}

/// Words, operators, parentheses and texts; comments are left out.
fn tokens(text: &str) -> Vec<Range<usize>> {
    const OPERATORS: [&str; 6] = ["<=", ">=", "<>", "!=", "||", "->"];
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(char) = text[at..].chars().next() {
        let rest = &text[at..];
        let (length, is_token) = if rest.starts_with("--") {
            (rest.find('\n').unwrap_or(rest.len()), false)
        } else if char == '\'' {
            (rest[1..].find('\'').map_or(rest.len(), |end| end + 2), true)
        } else if OPERATORS.iter().any(|operator| rest.starts_with(operator)) {
            (2, true)
        } else if is_part(char) {
            (rest.find(|char| !is_part(char)).unwrap_or(rest.len()), true)
        } else {
            (char.len_utf8(), !char.is_whitespace())
        };
        if is_token {
            tokens.push(at..at + length);
        }
        at += length;
    }
    tokens
}

fn is_part(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '.' | '?')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        changes(text).iter().map(|change| change.apply(text)).collect()
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
        let last = &changes(&text)[4];
        assert_eq!((last.line, last.column, last.what.as_str()), (3, 39, "replace > with >="));
        assert_eq!(changes(&text)[2].what, "replace until > ?2 with true");
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
}
