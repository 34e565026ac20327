//! Decides whether a write was applied.
//!
//! An error does not prove that a write was refused: the SDK repeats a write whose answer it did not receive. The repetition of an
//! applied `Create` answers 409, of an applied `Replace` under `If-Match` 412, and of an applied `Delete` 404. Such a write is *in
//! doubt*. Every written document carries the id of its write, so that a read resolves the doubt.
//!
//! | answer | one attempt was sent | more were perhaps sent |
//! |---|---|---|
//! | success | applied | applied |
//! | 400, 413: the request itself is wrong | refused | refused |
//! | 401, 403, 404, 409, 412, 429: refused before it was executed | refused | in doubt |
//! | 408, 410, 449, 5xx, no answer | in doubt | in doubt |
//! | any error, and no attempt was sent | refused | |

use crate::ids::Uid;

/// The answer to a write, over all attempts of the SDK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The status of the last attempt; of a failed batch the status of the operation that failed. `None`: no answer came.
    pub(crate) status: Option<u16>,
    /// The number of attempts that were sent, or perhaps sent.
    pub(crate) sent: u32,
}

/// The reason of a refusal, which decides what the caller does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Refusal {
    /// 404: the document does not exist.
    Absent,
    /// 409: a document with this id exists.
    Exists,
    /// 412: the document is not the one that the caller read.
    Changed,
    /// 429, or never sent: the same request may succeed later.
    Later,
    /// 400, 401, 403, 413: the same request fails again until an operator changes something.
    Permanent,
}

/// The knowledge about a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Verdict {
    Applied,
    Refused(Refusal),
    /// The caller resolves the doubt by reading.
    InDoubt,
}

impl Answer {
    /// Classifies the answer.
    pub(crate) fn verdict(&self) -> Verdict {
        let Some(status) = self.status else {
            return if self.sent == 0 { Verdict::Refused(Refusal::Later) } else { Verdict::InDoubt };
        };
        let refusal = match status {
            200..=299 => return Verdict::Applied,
            400 | 413 => return Verdict::Refused(Refusal::Permanent),
            401 | 403 => Refusal::Permanent,
            404 => Refusal::Absent,
            409 => Refusal::Exists,
            412 => Refusal::Changed,
            429 => Refusal::Later,
            _ if self.sent == 0 => Refusal::Later,
            _ => return Verdict::InDoubt,
        };
        if self.sent > 1 { Verdict::InDoubt } else { Verdict::Refused(refusal) }
    }

    /// The answer to a batch from the statuses of its operations. A failed batch has one operation with a status of its own, and
    /// 424 for the others.
    pub(crate) fn of_batch(statuses: &[u16], sent: u32) -> Self {
        let failed = statuses.iter().copied().filter(|status| !(200..300).contains(status));
        // A batch with 424 only lacks the answer of the failed operation: the batch is then in doubt.
        let failed: Vec<u16> = failed.collect();
        let status = match failed.iter().find(|status| **status != 424) {
            Some(cause) => Some(*cause),
            None if failed.is_empty() && !statuses.is_empty() => Some(200),
            None => None,
        };
        Self { status, sent }
    }
}

/// The attempts of one write, over all repetitions of its caller.
///
/// The first attempt may arrive late, after its caller has read that the write was not applied, and before the repetition. The
/// repetition is then refused although the write is applied.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    sent: u32,
}

impl Attempts {
    /// Classifies the answer to the next repetition.
    pub(crate) fn verdict(&mut self, answer: &Answer) -> Verdict {
        self.sent = self.sent.saturating_add(answer.sent);
        Answer { sent: self.sent, ..answer.clone() }.verdict()
    }
}

/// The resolution of a doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Resolved {
    Applied,
    /// The write was not applied so far, and may be sent again **with the same write id**: the first attempt may still arrive,
    /// and one of the two is refused.
    Repeat,
    /// Another writer was first: the write was not applied and never will be.
    Lost,
}

/// A write that replaces the document of an instance under `If-Match`: a commit, a flip, a lock, a renewal.
///
/// A caller that repeats a write counts the attempts of all repetitions by [`Attempts`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct InstanceWrite<'a> {
    /// The id of the write.
    pub(crate) write: Uid,
    /// The `If-Match` of the write.
    pub(crate) etag: &'a str,
}

/// The document of an instance, read to resolve a doubt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredInstance<'a> {
    pub(crate) etag: &'a str,
    /// The ids of its last writes.
    pub(crate) writes: &'a [Uid],
}

/// The number of write ids that the document of an instance keeps.
pub(crate) const KEPT_WRITES: usize = 8;

impl InstanceWrite<'_> {
    /// Resolves the doubt. `has_events`: a document of events with the write's id exists, which outlasts the list of writes.
    pub(crate) fn resolve(&self, stored: Option<StoredInstance<'_>>, has_events: bool) -> Resolved {
        match stored {
            _ if has_events => Resolved::Applied,
            None => Resolved::Lost,
            Some(stored) if stored.writes.contains(&self.write) => Resolved::Applied,
            Some(stored) if stored.etag == self.etag => Resolved::Repeat,
            Some(_) => Resolved::Lost,
        }
    }

    /// Resolves the doubt of a write after which the writer must still hold the lease: a lock, a renewal, a reservation. If the
    /// write was applied, the writer continues with the stored ETag, which is its own only while `holds_token`.
    pub(crate) fn resolve_kept(&self, stored: Option<StoredInstance<'_>>, holds_token: bool) -> Resolved {
        match self.resolve(stored, false) {
            Resolved::Applied if !holds_token => Resolved::Lost,
            resolved => resolved,
        }
    }
}

/// Resolves a staged batch by its first document. `is_guarded`: the instance still has the ETag that guards the batch; else the
/// batch can no longer be applied, and its document, if there is one, belongs to an attempt that is given up.
pub(crate) fn resolve_staged(write: Uid, stored: Option<Uid>, is_guarded: bool) -> Resolved {
    match is_guarded {
        true => resolve_create(write, stored),
        false => Resolved::Lost,
    }
}

/// Resolves the creation of a document with a fixed key: a message, a start, a delivery.
/// `stored` is the write id of the document under that key. A consumed message left a tombstone, which keeps the write id.
pub(crate) fn resolve_create(write: Uid, stored: Option<Uid>) -> Resolved {
    match stored {
        None => Resolved::Repeat,
        Some(found) if found == write => Resolved::Applied,
        Some(_) => Resolved::Lost,
    }
}

/// The document of an activity, read to resolve a doubt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredActivity<'a> {
    pub(crate) etag: &'a str,
    pub(crate) write: Uid,
}

/// A call of a worker on its activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActivityCall {
    Complete,
    RenewOrGiveBack,
}

/// Resolves a write of the holder of an activity. An activity without a document was cancelled, or completed and consumed: a
/// completion can have no further effect in either case, and a renewal has lost its lease.
pub(crate) fn resolve_activity(
    call: ActivityCall,
    write: Uid,
    etag: &str,
    stored: Option<StoredActivity<'_>>,
) -> Resolved {
    match stored {
        None if call == ActivityCall::Complete => Resolved::Applied,
        None => Resolved::Lost,
        Some(stored) if stored.write == write => Resolved::Applied,
        Some(stored) if stored.etag == etag => Resolved::Repeat,
        Some(_) => Resolved::Lost,
    }
}

/// The ids of the last writes with one more.
pub(crate) fn with_write(mut writes: Vec<Uid>, write: Uid) -> Vec<Uid> {
    writes.push(write);
    let old = writes.len().saturating_sub(KEPT_WRITES);
    writes.drain(..old);
    writes
}

#[cfg(test)]
mod tests {
    use super::*;
    use Refusal::{Absent, Changed, Exists, Later, Permanent};
    use Verdict::{Applied, InDoubt, Refused};

    #[test]
    fn verdicts_are_those_of_the_table() {
        let single = |status| Answer { status: Some(status), sent: 1 }.verdict();
        let repeated = |status| Answer { status: Some(status), sent: 2 }.verdict();
        for status in [200, 201, 204] {
            assert_eq!((single(status), repeated(status)), (Applied, Applied), "{status}");
        }
        for status in [400, 413] {
            assert_eq!(
                (single(status), repeated(status)),
                (Refused(Permanent), Refused(Permanent)),
                "{status}"
            );
        }
        let refusals =
            [(401, Permanent), (403, Permanent), (404, Absent), (409, Exists), (412, Changed), (429, Later)];
        for (status, refusal) in refusals {
            assert_eq!((single(status), repeated(status)), (Refused(refusal), InDoubt), "{status}");
        }
        for status in [408, 410, 424, 449, 500, 503] {
            assert_eq!((single(status), repeated(status)), (InDoubt, InDoubt), "{status}");
            let unsent = Answer { status: Some(status), sent: 0 };
            assert_eq!(unsent.verdict(), Refused(Later), "{status}");
        }
    }

    #[test]
    fn a_lost_answer_is_in_doubt_unless_nothing_was_sent() {
        assert_eq!(Answer { status: None, sent: 0 }.verdict(), Refused(Later));
        assert_eq!(Answer { status: None, sent: 1 }.verdict(), InDoubt);
    }

    #[test]
    fn a_repetition_that_is_refused_after_a_late_first_attempt_is_in_doubt() {
        for status in [401, 404, 409, 412, 429] {
            let mut attempts = Attempts::default();
            assert_eq!(attempts.verdict(&Answer { status: None, sent: 1 }), InDoubt);
            assert_eq!(attempts.verdict(&Answer { status: Some(status), sent: 1 }), InDoubt, "{status}");
        }
        let mut attempts = Attempts::default();
        assert_eq!(attempts.verdict(&Answer { status: None, sent: 0 }), Refused(Later), "nothing was sent");
        assert_eq!(attempts.verdict(&Answer { status: Some(412), sent: 1 }), Refused(Changed));
        assert_eq!(attempts.verdict(&Answer { status: Some(200), sent: 1 }), Applied);
    }

    #[test]
    fn the_cause_of_a_failed_batch_is_its_status() {
        let cases: [(&[u16], Verdict); 6] = [
            (&[200, 201], Applied),
            (&[424, 412], Refused(Changed)),
            (&[409, 424], Refused(Exists)),
            (&[200, 404, 424], Refused(Absent)),
            (&[424, 424], InDoubt),
            (&[], InDoubt),
        ];
        for (statuses, expected) in cases {
            assert_eq!(Answer::of_batch(statuses, 1).verdict(), expected, "{statuses:?}");
        }
        assert_eq!(Answer::of_batch(&[409, 424], 2).verdict(), InDoubt);
    }

    const OURS: Uid = Uid(1);
    const OTHER: Uid = Uid(2);

    #[test]
    fn a_write_of_an_instance_is_found_by_its_id_or_its_events() {
        let write = InstanceWrite { write: OURS, etag: "e0" };
        let stored = |etag, writes| Some(StoredInstance { etag, writes });
        assert_eq!(write.resolve(stored("e1", &[OTHER, OURS]), false), Resolved::Applied);
        assert_eq!(write.resolve(stored("e1", &[OTHER]), true), Resolved::Applied);
        assert_eq!(write.resolve(stored("e0", &[OTHER]), false), Resolved::Repeat);
        assert_eq!(write.resolve(stored("e1", &[OTHER]), false), Resolved::Lost);
        assert_eq!(write.resolve(None, false), Resolved::Lost);
    }

    #[test]
    fn an_applied_write_without_the_lease_is_lost() {
        let write = InstanceWrite { write: OURS, etag: "e0" };
        let stored = |etag, writes| Some(StoredInstance { etag, writes });
        assert_eq!(write.resolve_kept(stored("e1", &[OURS]), true), Resolved::Applied);
        assert_eq!(write.resolve_kept(stored("e1", &[OURS]), false), Resolved::Lost);
        assert_eq!(write.resolve_kept(stored("e0", &[]), false), Resolved::Repeat);
        assert_eq!(write.resolve_kept(stored("e1", &[]), true), Resolved::Lost);
    }

    #[test]
    fn a_staged_batch_is_lost_once_its_guard_changed() {
        for stored in [None, Some(OURS), Some(OTHER)] {
            assert_eq!(resolve_staged(OURS, stored, false), Resolved::Lost);
            assert_eq!(resolve_staged(OURS, stored, true), resolve_create(OURS, stored));
        }
    }

    #[test]
    fn a_created_document_is_found_by_its_write() {
        assert_eq!(resolve_create(OURS, Some(OURS)), Resolved::Applied);
        assert_eq!(resolve_create(OURS, None), Resolved::Repeat);
        assert_eq!(resolve_create(OURS, Some(OTHER)), Resolved::Lost);
    }

    #[test]
    fn an_absent_activity_counts_as_completed_but_not_as_renewed() {
        use ActivityCall::{Complete, RenewOrGiveBack};
        let resolve = |call, stored| resolve_activity(call, OURS, "e0", stored);
        assert_eq!(resolve(Complete, None), Resolved::Applied);
        assert_eq!(resolve(RenewOrGiveBack, None), Resolved::Lost);
        for call in [Complete, RenewOrGiveBack] {
            let found = |etag, write| resolve(call, Some(StoredActivity { etag, write }));
            assert_eq!(found("e1", OURS), Resolved::Applied);
            assert_eq!(found("e0", OTHER), Resolved::Repeat);
            assert_eq!(found("e1", OTHER), Resolved::Lost);
        }
    }

    #[test]
    fn an_instance_keeps_the_ids_of_its_last_writes() {
        let writes = (0..20).fold(Vec::new(), |writes, write| with_write(writes, Uid(write)));
        assert_eq!(writes, (12..20).map(Uid).collect::<Vec<_>>());
    }
}
