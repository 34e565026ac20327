//! The shop's books: the ledger, and the indexes by which activities detect duplicates.

use super::entry::{Because, Entry, Line};
use super::ledger::{LedgerFile, mark};
use crate::failure::Failure;
use outlast::providers::{Clock, SystemClock};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// The books, shared by all activities.
#[derive(Clone)]
pub(super) struct Books(Arc<Mutex<Open>>);

impl Books {
    /// Opens the books on a ledger, and returns its entries.
    pub(super) fn open(ledger: LedgerFile) -> Result<(Self, Vec<Line>), Failure> {
        let mut open = Open {
            ledger,
            done: HashMap::new(),
            taken: BTreeMap::new(),
            calls: HashMap::new(),
            tally: Tally::default(),
        };
        let lines = open.exclusively(|open, lines| {
            if lines.is_empty() {
                open.note(mark())?;
            }
            Ok(lines)
        })?;
        Ok((Self(Arc::new(Mutex::new(open))), lines))
    }

    /// Runs a function with the books on a thread that may block on the disk.
    pub(super) async fn with<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Open) -> io::Result<T> + Send + 'static,
    ) -> Result<T, String> {
        let books = Arc::clone(&self.0);
        let acted = tokio::task::spawn_blocking(move || {
            books.lock().unwrap_or_else(PoisonError::into_inner).exclusively(|open, _| act(open))
        });
        match acted.await {
            Ok(done) => done.map_err(|error| format!("the ledger cannot be written: {error}")),
            Err(error) => Err(format!("the ledger was not written: {error}")),
        }
    }

    /// Writes one line outside of an activity.
    pub(super) async fn note(&self, entry: Entry) -> Result<(), Failure> {
        self.with(move |books| books.note(entry)).await.map_err(Failure::new)
    }

    /// All entries on disk.
    pub(super) fn read_back(&self) -> Result<Vec<Line>, Failure> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ledger = &mut open.ledger;
        ledger.lock()?;
        ledger.rewind();
        let lines = ledger.added();
        ledger.unlock()?;
        Ok(lines?)
    }

    /// The counts of the newest batch so far.
    pub(super) async fn tally(&self) -> Result<Tally, Failure> {
        self.with(|books| Ok(books.tally.clone())).await.map_err(Failure::new)
    }
}

/// Counts of a batch that runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// The number of effects that were requested again and not repeated.
    pub(super) prevented: usize,
    /// The number of charges by order.
    charges: BTreeMap<String, usize>,
}

impl Tally {
    /// The number of orders that were charged more than once.
    pub(super) fn charged_twice(&self) -> usize {
        self.charges.values().filter(|count| **count > 1).count()
    }
}

/// The locked books.
pub(super) struct Open {
    ledger: LedgerFile,
    /// The effects by key.
    done: HashMap<String, Entry>,
    /// The number of reserved pieces by item.
    taken: BTreeMap<String, u64>,
    /// Calls to the gateway, by payment.
    calls: HashMap<String, u64>,
    tally: Tally,
}

impl Open {
    /// Runs a function while no other process uses the ledger, after the lines of other processes, which the function gets, are applied.
    fn exclusively<T>(&mut self, act: impl FnOnce(&mut Self, Vec<Line>) -> io::Result<T>) -> io::Result<T> {
        self.ledger.lock()?;
        let added = self.ledger.added();
        let done = added.and_then(|lines| {
            lines.iter().for_each(|line| self.apply(line));
            act(self, lines)
        });
        self.ledger.unlock()?;
        done
    }

    /// Writes a line without a key, which may be repeated.
    pub(super) fn note(&mut self, entry: Entry) -> io::Result<()> {
        self.write(None, entry)
    }

    /// Causes an effect under a key, unless the key exists. Returns the new or the existing effect.
    pub(super) fn once(&mut self, key: &str, entry: impl FnOnce(&Self) -> Entry) -> io::Result<Entry> {
        if let Some(done) = self.done.get(key).cloned() {
            self.note(refusal(key, &done))?;
            return Ok(done);
        }
        let entry = entry(self);
        self.write(Some(key.to_string()), entry.clone())?;
        Ok(entry)
    }

    /// The effect of a key.
    pub(super) fn done(&self, key: &str) -> Option<&Entry> {
        self.done.get(key)
    }

    /// Pieces that are reserved.
    pub(super) fn taken(&self, sku: &str) -> u64 {
        self.taken.get(sku).copied().unwrap_or_default()
    }

    /// The number of calls to the gateway for a payment.
    pub(super) fn calls(&self, payment: &str) -> u64 {
        self.calls.get(payment).copied().unwrap_or_default()
    }

    fn write(&mut self, key: Option<String>, entry: Entry) -> io::Result<()> {
        let line = Line { at_ms: SystemClock.now_ms(), key, entry };
        self.ledger.append(&line)?;
        self.apply(&line);
        Ok(())
    }

    fn apply(&mut self, line: &Line) {
        match &line.entry {
            // A new batch begins with a full stock.
            Entry::Batch(_) => (self.taken, self.tally) = (BTreeMap::new(), Tally::default()),
            Entry::Charged { order, .. } => *self.tally.charges.entry(order.clone()).or_default() += 1,
            Entry::Reserved { items, .. } => {
                for item in items {
                    *self.taken.entry(item.sku.clone()).or_default() += item.quantity;
                }
            }
            Entry::Released { items, .. } => {
                for item in items {
                    let taken = self.taken.entry(item.sku.clone()).or_default();
                    *taken = taken.saturating_sub(item.quantity);
                }
            }
            Entry::Unavailable { payment, .. } | Entry::Refused { repeats: payment, .. } => {
                *self.calls.entry(payment.clone()).or_default() += 1;
            }
            _ => {}
        }
        self.tally.prevented += usize::from(matches!(line.entry, Entry::Refused { .. }));
        if let Some(key) = &line.key {
            *self.calls.entry(key.clone()).or_default() += 1;
            self.done.insert(key.clone(), line.entry.clone());
        }
    }
}

fn refusal(key: &str, done: &Entry) -> Entry {
    let because = match done {
        Entry::Charged { answer_lost: true, .. } => Because::AnswerLost,
        _ => Because::DeliveredAgain,
    };
    let order = done.order().unwrap_or_default().to_string();
    Entry::Refused { order, repeats: key.to_string(), because }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::goods::Item;

    fn packed(order: &str) -> Entry {
        Entry::Packed { order: order.to_string(), sku: "mug".to_string() }
    }

    #[tokio::test]
    async fn a_key_allows_one_effect_also_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        for _ in 0..2 {
            let (books, _) = Books::open(LedgerFile::open(&path).unwrap()).unwrap();
            let done = books.with(|books| books.once("a:1:2", |_| packed("a"))).await.unwrap();
            assert_eq!(done, packed("a"));
        }
        let (_, lines) = Books::open(LedgerFile::open(&path).unwrap()).unwrap();
        let entries: Vec<&Entry> = lines.iter().map(|line| &line.entry).collect();
        let refused =
            Entry::Refused { order: "a".into(), repeats: "a:1:2".into(), because: Because::DeliveredAgain };
        assert_eq!(entries, [&mark(), &packed("a"), &refused]);
    }

    #[tokio::test]
    async fn a_key_allows_one_effect_in_two_processes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        let (first, _) = Books::open(LedgerFile::open(&path).unwrap()).unwrap();
        let (second, _) = Books::open(LedgerFile::open(&path).unwrap()).unwrap();
        let charged = || Entry::Charged { order: "a".into(), cents: 5, answer_lost: false };
        first.with(move |books| books.once("a:1:2", |_| charged())).await.unwrap();
        let seen = second.with(|books| books.once("a:1:2", |_| packed("a"))).await.unwrap();
        assert_eq!(seen, charged());
        let tally = first.tally().await.unwrap();
        assert_eq!((tally.prevented, tally.charged_twice()), (1, 0));
        second.with(move |books| books.once("a:1:3", |_| charged())).await.unwrap();
        assert_eq!(first.tally().await.unwrap().charged_twice(), 1);
        assert_eq!(first.read_back().unwrap().len(), 4);
    }

    #[tokio::test]
    async fn the_books_count_stock_and_calls() {
        let dir = tempfile::tempdir().unwrap();
        let (books, _) = Books::open(LedgerFile::open(&dir.path().join("l")).unwrap()).unwrap();
        let items = vec![Item { sku: "mug".into(), quantity: 2, cents: 1 }];
        let counted = books
            .with(move |books| {
                books.note(Entry::Reserved { order: "a".into(), items: items.clone() })?;
                books.note(Entry::Reserved { order: "b".into(), items: items.clone() })?;
                books.note(Entry::Released { order: "a".into(), items })?;
                books.note(Entry::Unavailable { order: "a".into(), payment: "p".into() })?;
                books.once("p", |_| packed("a"))?;
                books.once("p", |_| packed("a"))?;
                Ok((books.taken("mug"), books.taken("desk"), books.calls("p")))
            })
            .await;
        assert_eq!(counted, Ok((2, 0, 3)));
    }
}
