//! The two forms of a commit in PostgreSQL share most of their text: each change of shared text is made in one form only.

use super::conditions::Change;
use super::tokens::MARKS;

/// The marks of the sections of a form, and its function.
const FORMS: [(&str, &str, &str); 2] =
    [("{batch}", "{alone}", "commit_1"), ("{alone}", "{batch}", "commit_alone_1")];

/// Makes two changes of each change that is in no section of a form.
pub(super) fn split(text: &str, changes: Vec<Change>) -> Vec<Change> {
    if !MARKS.iter().all(|mark| text.contains(mark)) {
        return changes;
    }
    changes.into_iter().flat_map(|change| in_forms(text, change)).collect()
}

fn in_forms(text: &str, change: Change) -> Vec<Change> {
    let was = &text[change.at.clone()];
    if is_in_section(&text[..change.at.start]) || MARKS.iter().any(|mark| was.contains(mark)) {
        return vec![change];
    }
    let of_form = |(mark, other, function): (&str, &str, &str)| Change {
        at: change.at.clone(),
        new: format!("{mark}{}{{end}}{other}{was}{{end}}", change.new),
        what: format!("{} in {function}", change.what),
        ..change
    };
    FORMS.map(of_form).into()
}

/// Whether the last mark begins a section.
fn is_in_section(before: &str) -> bool {
    let last = MARKS.iter().filter_map(|mark| Some((before.rfind(mark)?, *mark))).max();
    last.is_some_and(|(_, mark)| mark != "{end}")
}

#[cfg(test)]
mod tests {
    use crate::statements::dialect::Dialect;

    #[test]
    fn shared_text_is_changed_in_one_form_at_a_time() {
        let text = "IF {batch}a{end}{alone}b{end} THEN DELETE FROM t WHERE c; END IF;";
        let changes = Dialect::Postgres.changes("crates/postgres/migrations/functions/c.sql", text);
        let never = changes.iter().filter(|change| change.what.contains("with false"));
        let texts: Vec<String> = never.map(|change| change.apply(text)).collect();
        assert_eq!(
            texts,
            [
                "IF {batch}(a AND false){end}{alone}b{end} THEN DELETE FROM t WHERE c; END IF;",
                "IF {batch}a{end}{alone}(b AND false){end} THEN DELETE FROM t WHERE c; END IF;",
                "IF {batch}a{end}{alone}b{end} THEN DELETE FROM t WHERE {batch}(c AND false){end}{alone}c{end}; END IF;",
                "IF {batch}a{end}{alone}b{end} THEN DELETE FROM t WHERE {alone}(c AND false){end}{batch}c{end}; END IF;",
            ]
        );
    }
}
