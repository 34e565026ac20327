//! Plans the batches of a turn. A turn that fits into one batch is committed by that batch. A larger turn is staged:
//!
//! | step | request | makes |
//! |---|---|---|
//! | reserve | replaces the instance under `If-Match` | `staged = rev + 1`: documents with that rev are hidden |
//! | stage | batches, in parallel, each guarded by a read of the instance under `If-Match` | the hidden documents |
//! | flip | replaces the instance under `If-Match`, and what fits beside it | the turn visible, in one step |
//! | drop | guarded batches | consumed documents that the flip could only name disappear |
//!
//! The flip hides every consumed document that it does not remove by naming it in `dropped`.

use crate::ids;
use std::ops::Range;

/// The size of a batch: Cosmos DB refuses more than 100 operations, and more than 2 MiB. The operations themselves, without the
/// documents, need the difference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Operations, with the one on the instance. At least two.
    pub(crate) operations: usize,
    /// Bytes of the documents as JSON. Also the size of the largest document.
    pub(crate) bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { operations: 100, bytes: 1_800_000 }
    }
}

/// A larger document of events is split, so that a reader gets them in pages.
pub(crate) const HISTORY_BYTES: usize = 1_000_000;

/// The most tombstones of cancelled activities in a flip. Further cancelled activities are dropped: their workers notice the
/// cancellation later.
const MOST_CANCELLED: usize = 90;

/// The size of the tombstone of a consumed message.
const TOMBSTONE_BYTES: usize = 300;

/// A document to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document<B> {
    pub(crate) id: String,
    /// The size of the body as JSON.
    pub(crate) bytes: usize,
    pub(crate) body: B,
}

/// The documents of a turn.
#[derive(Clone, Debug)]
pub(crate) struct Turn<B> {
    /// The size of the instance after the turn, without `dropped`.
    pub(crate) instance_bytes: usize,
    /// Events, activities, messages, intents.
    pub(crate) creates: Vec<Document<B>>,
    /// Key-value pairs, which may exist.
    pub(crate) key_values: Vec<Document<B>>,
    /// Tombstones of cancelled activities, which may exist.
    pub(crate) cancelled: Vec<Document<B>>,
    /// The messages and completions that the turn took. They exist, because only the holder of the lease removes them.
    pub(crate) consumed: Vec<String>,
}

/// An operation of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation<B> {
    Create(Document<B>),
    Upsert(Document<B>),
    /// Writes a document that keeps its committed content beside the new one, because readers must find the committed content
    /// until the flip, and for ever if the turn is given up.
    UpsertVersioned(Document<B>),
    Delete(String),
    /// Replaces a consumed message by a tombstone.
    Bury(String),
}

/// The batches of a turn, without the operation on the instance that each begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan<B> {
    OneBatch(Vec<Operation<B>>),
    Staged { stages: Vec<Vec<Operation<B>>>, flip: Vec<Operation<B>>, dropped: Vec<String> },
}

/// A document that no batch can hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "document '{id}' has {bytes} bytes as JSON, and Cosmos DB accepts {limit}: make the input, output or event smaller"
)]
pub(crate) struct TooLarge {
    pub(crate) id: String,
    pub(crate) bytes: usize,
    pub(crate) limit: usize,
}

impl<B> Turn<B> {
    /// Plans the batches.
    pub(crate) fn plan(self, limits: Limits) -> Result<Plan<B>, TooLarge> {
        let instance = (ids::INSTANCE, self.instance_bytes);
        let documents = self.creates.iter().chain(&self.key_values).chain(&self.cancelled);
        let sizes = documents.map(|document| (document.id.as_str(), document.bytes)).chain([instance]);
        if let Some((id, bytes)) = sizes.into_iter().find(|(_, bytes)| *bytes > limits.bytes) {
            return Err(TooLarge { id: id.to_string(), bytes, limit: limits.bytes });
        }
        match self.fits_one_batch(limits) {
            true => Ok(Plan::OneBatch(self.one_batch())),
            false => self.staged(limits),
        }
    }

    fn fits_one_batch(&self, limits: Limits) -> bool {
        let written = self.creates.iter().chain(&self.key_values).chain(&self.cancelled);
        let (mut operations, mut bytes) = (1 + self.consumed.len(), self.instance_bytes);
        for document in written {
            operations += 1;
            bytes = bytes.saturating_add(document.bytes);
        }
        bytes = bytes.saturating_add(self.consumed.iter().map(|id| removal_bytes(id)).sum());
        operations <= limits.operations && bytes <= limits.bytes
    }

    fn one_batch(self) -> Vec<Operation<B>> {
        let upserts = self.key_values.into_iter().chain(self.cancelled).map(Operation::Upsert);
        let creates = self.creates.into_iter().map(Operation::Create);
        creates.chain(upserts).chain(self.consumed.into_iter().map(removal)).collect()
    }

    fn staged(self, limits: Limits) -> Result<Plan<B>, TooLarge> {
        // Everything that can be dropped is, until it is found to fit.
        let cancelled = self.cancelled.iter().map(|document| document.id.as_str());
        let dropped = cancelled.chain(self.consumed.iter().map(String::as_str)).map(name_bytes).sum();
        let mut flip =
            Flip { room: limits.operations - 1, bytes: self.instance_bytes.saturating_add(dropped), limits };
        if flip.bytes > limits.bytes {
            return Err(TooLarge { id: ids::INSTANCE.to_string(), bytes: flip.bytes, limit: limits.bytes });
        }
        let mut staged: Vec<Operation<B>> = self.creates.into_iter().map(Operation::Create).collect();
        let mut operations = Vec::new();
        let pairs: usize = self.key_values.iter().map(|document| document.bytes).sum();
        match flip.accepts(self.key_values.len(), pairs, 0) {
            true => operations.extend(self.key_values.into_iter().map(Operation::Upsert)),
            false => staged.extend(self.key_values.into_iter().map(Operation::UpsertVersioned)),
        }
        let mut dropped = Vec::new();
        for (nth, tombstone) in self.cancelled.into_iter().enumerate() {
            match nth < MOST_CANCELLED && flip.accepts(1, tombstone.bytes, name_bytes(&tombstone.id)) {
                true => operations.push(Operation::Upsert(tombstone)),
                false => dropped.push(tombstone.id),
            }
        }
        for id in self.consumed {
            match flip.accepts(1, removal_bytes(&id), name_bytes(&id)) {
                true => operations.push(removal(id)),
                false => dropped.push(id),
            }
        }
        Ok(Plan::Staged { stages: packed(staged, limits), flip: operations, dropped })
    }
}

/// The batch that makes a staged turn visible.
struct Flip {
    /// Operations that fit.
    room: usize,
    bytes: usize,
    limits: Limits,
}

impl Flip {
    /// Adds operations if they fit. `named` bytes of the instance are saved, because it need not name them.
    fn accepts(&mut self, operations: usize, bytes: usize, named: usize) -> bool {
        let bytes = (self.bytes - named).saturating_add(bytes);
        let fits = operations <= self.room && bytes <= self.limits.bytes;
        if fits {
            self.room -= operations;
            self.bytes = bytes;
        }
        fits
    }
}

/// Consecutive operations in as few batches as this order allows. Each batch begins with the guard.
fn packed<B>(operations: Vec<Operation<B>>, limits: Limits) -> Vec<Vec<Operation<B>>> {
    let mut batches: Vec<Vec<Operation<B>>> = Vec::new();
    let mut bytes = 0_usize;
    for operation in operations {
        let more = operation.bytes();
        match batches.last_mut() {
            Some(batch)
                if batch.len() + 1 < limits.operations && bytes.saturating_add(more) <= limits.bytes =>
            {
                batch.push(operation);
                bytes += more;
            }
            _ => {
                batches.push(vec![operation]);
                bytes = more;
            }
        }
    }
    batches
}

impl<B> Operation<B> {
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Create(document) | Self::Upsert(document) | Self::UpsertVersioned(document) => &document.id,
            Self::Delete(id) | Self::Bury(id) => id,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Create(document) | Self::Upsert(document) | Self::UpsertVersioned(document) => {
                document.bytes
            }
            Self::Delete(_) => 0,
            Self::Bury(_) => TOMBSTONE_BYTES,
        }
    }
}

/// The operation that removes a consumed document: in a flip, and later for a dropped one.
pub(crate) fn removal<B>(id: String) -> Operation<B> {
    match ids::leaves_tombstone(&id) {
        true => Operation::Bury(id),
        false => Operation::Delete(id),
    }
}

fn removal_bytes(id: &str) -> usize {
    if ids::leaves_tombstone(id) { TOMBSTONE_BYTES } else { 0 }
}

/// The bytes of an id in `dropped`: with quotes and a comma.
fn name_bytes(id: &str) -> usize {
    id.len() + 3
}

/// Splits the events of a turn into documents, by their sizes. An event that is larger than a document has one of its own.
pub(crate) fn history_parts(sizes: &[usize], limit: usize) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0_usize;
    for (index, size) in sizes.iter().enumerate() {
        match parts.last_mut() {
            Some(part) if bytes.saturating_add(*size) <= limit => {
                part.end = index + 1;
                bytes += size;
            }
            _ => {
                parts.push(index..index + 1);
                bytes = *size;
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{MessageKey, SentKey, Uid};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn document(id: String, bytes: usize) -> Document<()> {
        Document { id, bytes, body: () }
    }

    fn turn(creates: usize, bytes: usize) -> Turn<()> {
        let creates = (0..creates).map(|n| document(format!("a:1:{n}"), bytes)).collect();
        Turn { instance_bytes: 1_000, creates, key_values: vec![], cancelled: vec![], consumed: vec![] }
    }

    fn sizes(plan: &Plan<()>) -> (Vec<usize>, usize, usize) {
        match plan {
            Plan::OneBatch(operations) => (vec![], operations.len(), 0),
            Plan::Staged { stages, flip, dropped } => {
                (stages.iter().map(Vec::len).collect(), flip.len(), dropped.len())
            }
        }
    }

    #[test]
    fn a_turn_of_up_to_100_operations_is_one_batch() {
        assert_eq!(sizes(&turn(99, 10).plan(Limits::default()).unwrap()), (vec![], 99, 0));
        assert_eq!(sizes(&turn(100, 10).plan(Limits::default()).unwrap()), (vec![99, 1], 0, 0));
    }

    #[test]
    fn a_turn_of_up_to_the_limit_of_bytes_is_one_batch() {
        let limit = Limits::default().bytes;
        assert_eq!(sizes(&turn(1, limit - 1_000).plan(Limits::default()).unwrap()), (vec![], 1, 0));
        assert_eq!(sizes(&turn(1, limit - 999).plan(Limits::default()).unwrap()), (vec![1], 0, 0));
        assert_eq!(sizes(&turn(2, limit).plan(Limits::default()).unwrap()), (vec![1, 1], 0, 0));
    }

    #[test]
    fn a_document_over_the_limit_is_refused_with_its_size() {
        let refused = turn(1, 1_800_001).plan(Limits::default()).unwrap_err();
        assert_eq!((refused.id.as_str(), refused.bytes, refused.limit), ("a:1:0", 1_800_001, 1_800_000));
        assert!(refused.to_string().contains("1800001 bytes"), "{refused}");
        let instance = Turn { instance_bytes: 1_800_001, ..turn(0, 0) };
        assert_eq!(instance.plan(Limits::default()).unwrap_err().id, "i");
    }

    #[test]
    fn a_thousand_activities_are_eleven_stages() {
        let (stages, ..) = sizes(&turn(1_001, 200).plan(Limits::default()).unwrap());
        assert_eq!((stages.len(), stages.iter().sum::<usize>()), (11, 1_001));
    }

    #[test]
    fn consumed_messages_that_do_not_fit_into_the_flip_are_dropped() {
        let consumed: Vec<String> = (0..300).map(|n| ids::message(&MessageKey::Enqueued(Uid(n)))).collect();
        let turn = Turn { consumed, ..turn(1, 10) };
        assert_eq!(sizes(&turn.plan(Limits::default()).unwrap()), (vec![1], 99, 201));
    }

    #[test]
    fn consumed_outbox_messages_become_tombstones() {
        let sent = ids::message(&MessageKey::Sent(SentKey { source: Uid(1), rev: 2, nth: 3 }));
        let enqueued = ids::message(&MessageKey::Enqueued(Uid(1)));
        let turn = Turn { consumed: vec![sent.clone(), enqueued.clone(), "a:1:2".into()], ..turn(0, 0) };
        let expected =
            vec![Operation::Bury(sent), Operation::Delete(enqueued), Operation::Delete("a:1:2".into())];
        assert_eq!(turn.plan(Limits::default()).unwrap(), Plan::OneBatch(expected));
    }

    #[test]
    fn a_flip_holds_at_most_90_tombstones_of_cancelled_activities() {
        let cancelled = (0..150).map(|n| document(ids::activity(1, n, None), 100)).collect();
        let plan =
            Turn { cancelled, consumed: vec!["m:1".into()], ..turn(0, 0) }.plan(Limits::default()).unwrap();
        assert_eq!(sizes(&plan), (vec![], 91, 60));
    }

    #[test]
    fn key_values_are_in_the_flip_or_keep_their_committed_content() {
        let pairs = |bytes| (0..60).map(|n| document(ids::key_value(&format!("{n}")), bytes)).collect();
        let small = Turn { key_values: pairs(100), ..turn(100, 10) }.plan(Limits::default()).unwrap();
        assert_eq!(sizes(&small), (vec![99, 1], 60, 0));
        let large = Turn { key_values: pairs(60_000), ..turn(0, 10) }.plan(Limits::default()).unwrap();
        let Plan::Staged { stages, flip, .. } = &large else { panic!("{large:?}") };
        assert_eq!((stages.len(), flip.len()), (2, 0));
        assert!(stages.iter().flatten().all(|operation| matches!(operation, Operation::UpsertVersioned(_))));
    }

    #[test]
    fn events_are_split_where_a_document_is_full() {
        assert_eq!(history_parts(&[], 10), []);
        assert_eq!(history_parts(&[600_000, 400_000, 1], HISTORY_BYTES), [0..2, 2..3]);
        assert_eq!(history_parts(&[5, 5, 1, 20, 3], 10), [0..2, 2..3, 3..4, 4..5]);
    }

    fn turns() -> impl Strategy<Value = (Turn<()>, Limits)> {
        let limits = (2..20_usize, 1_000..5_000_usize);
        let counts = (0..60_usize, 0..20_usize, 0..120_usize, 0..60_usize);
        (limits, counts, 0..1_500_usize, any::<bool>()).prop_map(|(limits, counts, bytes, by_outbox)| {
            let limits = Limits { operations: limits.0, bytes: limits.1 };
            let documents = |kind: &str, count: usize| {
                (0..count)
                    .map(|n| document(format!("{kind}:1:{n}"), (bytes * (n + 1) * 7) % 1_100))
                    .collect::<Vec<_>>()
            };
            let key = |n: usize| match by_outbox {
                true => MessageKey::Sent(SentKey { source: Uid(1), rev: 1, nth: n as u32 }),
                false => MessageKey::Enqueued(Uid(n as u128)),
            };
            let turn = Turn {
                instance_bytes: bytes / 3,
                creates: documents("h", counts.0),
                key_values: documents("k", counts.1),
                cancelled: documents("a", counts.2),
                consumed: (0..counts.3).map(|n| ids::message(&key(n))).collect(),
            };
            (turn, limits)
        })
    }

    fn check_batch(batch: &[Operation<()>], own_bytes: usize, limits: Limits) -> Result<(), TestCaseError> {
        prop_assert!(batch.len() < limits.operations);
        prop_assert!(own_bytes + batch.iter().map(Operation::bytes).sum::<usize>() <= limits.bytes);
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_plan_holds_every_document_once_and_no_batch_is_too_large((turn, limits) in turns()) {
            let written: Vec<&str> =
                turn.creates.iter().chain(&turn.key_values).map(|document| document.id.as_str()).collect();
            let removed = turn.cancelled.iter().map(|document| document.id.as_str());
            let removed: Vec<&str> = removed.chain(turn.consumed.iter().map(String::as_str)).collect();
            let fits = turn.fits_one_batch(limits);
            let instance_bytes = turn.instance_bytes;
            let created: BTreeSet<&str> = turn.creates.iter().map(|document| document.id.as_str()).collect();
            let planned = match turn.clone().plan(limits) {
                Ok(planned) => planned,
                Err(refused) => {
                    prop_assert!(refused.bytes > limits.bytes);
                    return Ok(());
                }
            };
            prop_assert_eq!(matches!(planned, Plan::OneBatch(_)), fits, "staged only if needed");
            let (stages, flip, dropped) = match planned {
                Plan::OneBatch(operations) => (vec![], operations, vec![]),
                Plan::Staged { stages, flip, dropped } => (stages, flip, dropped),
            };
            let mut found: Vec<&str> = stages.iter().flatten().chain(&flip).map(Operation::id).collect();
            found.extend(dropped.iter().map(String::as_str));
            let mut expected = [written, removed].concat();
            found.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
            for batch in &stages {
                prop_assert!(!batch.is_empty());
                check_batch(batch, 0, limits)?;
                // A staged document must be hidden until the flip: it is new, or keeps its committed content.
                let hides = |operation: &Operation<()>| matches!(operation, Operation::Create(_) | Operation::UpsertVersioned(_));
                prop_assert!(batch.iter().all(hides));
            }
            check_batch(&flip, instance_bytes + dropped.iter().map(|id| name_bytes(id)).sum::<usize>(), limits)?;
            if !fits {
                prop_assert!(flip.iter().all(|operation| !created.contains(operation.id())));
            }
        }

        #[test]
        fn parts_of_a_history_are_consecutive_and_small(sizes in proptest::collection::vec(0..50_usize, 0..60)) {
            let parts = history_parts(&sizes, 40);
            prop_assert_eq!(parts.iter().cloned().flatten().collect::<Vec<_>>(), (0..sizes.len()).collect::<Vec<_>>());
            for part in &parts {
                prop_assert!(part.len() == 1 || sizes[part.clone()].iter().sum::<usize>() <= 40);
            }
            for pair in parts.windows(2) {
                prop_assert!(sizes[pair[0].start..pair[1].start + 1].iter().sum::<usize>() > 40, "a part is not full");
            }
        }
    }
}
