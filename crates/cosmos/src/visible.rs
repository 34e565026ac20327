//! The reader's rule: it decides which documents of a partition a reader ignores.
//!
//! A document that a turn created carries the `rev` of that turn's commit; a document from outside carries none. The document of
//! the instance lists the revs that do not count, so that a staged turn becomes visible with one write.

use std::collections::BTreeSet;

/// The fields of the document of an instance that decide which other documents are visible.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Marks {
    /// The rev of the last commit, or of the last attempt that was given up. A rev is used once.
    pub(crate) rev: u64,
    /// The rev of the turn that is being staged.
    pub(crate) staged: Option<u64>,
    /// Revs of given-up attempts that may still have documents.
    pub(crate) dead: BTreeSet<u64>,
    /// Documents that are consumed and not yet removed.
    pub(crate) dropped: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    Visible,
    /// The reader ignores the document.
    Hidden,
    /// The document is newer than the marks: the reader reads the document of the instance again.
    MarksAreStale,
}

impl Marks {
    /// Whether a reader with these marks counts a document.
    pub(crate) fn visibility(&self, id: &str, rev: Option<u64>) -> Visibility {
        match rev {
            _ if self.dropped.contains(id) => Visibility::Hidden,
            None => Visibility::Visible,
            Some(rev) if self.staged == Some(rev) || self.dead.contains(&rev) => Visibility::Hidden,
            Some(rev) if rev > self.rev => Visibility::MarksAreStale,
            Some(_) => Visibility::Visible,
        }
    }

    /// The rev of the next attempt.
    pub(crate) fn next_rev(&self) -> u64 {
        self.staged.unwrap_or(0).max(self.rev).saturating_add(1)
    }

    /// Reserves a rev for a staged turn.
    pub(crate) fn reserve(&mut self) -> u64 {
        let rev = self.next_rev();
        self.staged = Some(rev);
        rev
    }

    /// Gives the staged turn of the last owner up. Its documents stay hidden until a sweep has removed them.
    pub(crate) fn give_up_staged(&mut self) {
        if let Some(rev) = self.staged.take() {
            self.dead.insert(rev);
            self.rev = self.rev.max(rev);
        }
    }

    /// Commits a turn: its documents become visible, and the consumed ones hidden.
    pub(crate) fn commit(&mut self, rev: u64, consumed: impl IntoIterator<Item = String>) {
        self.staged = None;
        self.rev = rev;
        self.dropped.extend(consumed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Visibility::{Hidden, MarksAreStale, Visible};

    #[test]
    fn readers_ignore_staged_dead_and_dropped_documents() {
        let marks = Marks {
            rev: 7,
            staged: Some(8),
            dead: BTreeSet::from([5]),
            dropped: BTreeSet::from(["m:1".to_string()]),
        };
        let cases = [
            ("h:1:1", Some(7), Visible),
            ("h:1:1", Some(1), Visible),
            ("h:1:1", Some(8), Hidden),
            ("h:1:1", Some(5), Hidden),
            ("h:1:1", Some(9), MarksAreStale),
            ("m:2", None, Visible),
            ("m:1", None, Hidden),
            ("m:1", Some(9), Hidden),
        ];
        for (id, rev, expected) in cases {
            assert_eq!(marks.visibility(id, rev), expected, "{id} {rev:?}");
        }
    }

    #[test]
    fn a_given_up_rev_is_hidden_and_never_used_again() {
        let mut marks = Marks { rev: 3, ..Marks::default() };
        assert_eq!(marks.reserve(), 4);
        assert_eq!(marks.visibility("h", Some(4)), Hidden);
        marks.give_up_staged();
        assert_eq!((marks.staged, marks.visibility("h", Some(4)), marks.next_rev()), (None, Hidden, 5));
        marks.dead.clear();
        assert_eq!(marks.next_rev(), 5, "the sweep does not free the rev");
        marks.give_up_staged();
        assert_eq!(marks.next_rev(), 5, "nothing was staged");
    }

    #[test]
    fn a_commit_shows_its_documents_and_hides_the_consumed_ones() {
        let mut marks = Marks::default();
        let rev = marks.reserve();
        assert_eq!(marks.visibility("m:1", None), Visible);
        marks.commit(rev, ["m:1".to_string()]);
        assert_eq!((marks.visibility("h", Some(rev)), marks.visibility("m:1", None)), (Visible, Hidden));
    }
}
