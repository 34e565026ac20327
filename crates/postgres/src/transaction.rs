//! One transaction of a lane: its requests and fetches before it is sent, and the answers of the server.

use crate::ask::{ActivityAsk, Ask, TurnAsk};
use crate::batch::Batch;
use crate::hand_off::HandOffs;
use crate::leased::{ActivityFetch, LeaseSender, RawActivity, RawTurn};
use crate::notify::Wants;
use crate::parked::Poll;
use crate::row::Row;
use crate::scheduler::SentLarge;
use outlast_provider_kit::queue::PerQueue;

pub(crate) type TurnPoll = Poll<TurnAsk, LeaseSender<RawTurn>>;
pub(crate) type ActivityPoll = Poll<ActivityAsk, LeaseSender<Vec<RawActivity>>>;
pub(crate) type TurnHandOffs = HandOffs<TurnAsk, LeaseSender<RawTurn>>;
pub(crate) type ActivityHandOffs = HandOffs<ActivityAsk, LeaseSender<Vec<RawActivity>>>;

/// Requests, and the fetches that are served with them.
#[derive(Default)]
pub(crate) struct Transaction {
    pub(crate) batch: Batch,
    pub(crate) polls: PerQueue<TurnPoll, ActivityPoll>,
    pub(crate) hand_offs: PerQueue<TurnHandOffs, ActivityHandOffs>,
    /// The queues in which the batch makes an item fetchable, besides the hand-offs.
    pub(crate) frees: PerQueue<bool>,
    /// The notifications that other processes want of this transaction.
    pub(crate) notifies: Wants,
    /// The queues whose notification is put off: this process takes the items itself, or notifies another one later.
    pub(crate) puts_off: PerQueue<bool>,
    /// Whether polls that find nothing ask for the time at which the next item becomes fetchable. The question costs as much as
    /// the poll.
    pub(crate) asks_next_due: bool,
    /// Given if the batch is a large request.
    pub(crate) large: Option<SentLarge>,
    /// The number of calls and fetches that waited for a lane when this transaction was put together.
    pub(crate) load: usize,
}

impl Transaction {
    /// A batch without fetches. Other processes are notified of everything that it frees.
    pub(crate) fn of_batch(batch: Batch) -> Self {
        let frees = batch.frees(PerQueue::default());
        let notifies = Wants { queues: frees, watches: true };
        Self { batch, frees, notifies, ..Self::default() }
    }

    /// The durations of the leases that the transaction asks for.
    pub(crate) fn lease_durations_ms(&self) -> impl Iterator<Item = u64> + '_ {
        let turns = self.polls.turns.groups.iter().flatten().chain(&self.hand_offs.turns.fetches);
        let activities =
            self.polls.activities.groups.iter().flatten().chain(&self.hand_offs.activities.fetches);
        turns.map(|fetch| fetch.ask.lock_ms()).chain(activities.map(|fetch| fetch.ask.lock_ms()))
    }
}

/// For each lease that a group wants, the index of its fetch.
pub(crate) fn fetch_of_each_lease(group: &[ActivityFetch]) -> impl Iterator<Item = usize> + '_ {
    group.iter().enumerate().flat_map(|(place, fetch)| std::iter::repeat_n(place, fetch.ask.wants()))
}

/// The rows of each statement of a transaction, or its error, and their place in [`Done`].
pub(crate) type Answers = Vec<(RowsOf, Result<Vec<tokio_postgres::Row>, tokio_postgres::Error>)>;

/// The answers of the server's functions.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) commits: Vec<Row>,
    /// Outcomes of instances that ended.
    pub(crate) outcomes: Vec<Row>,
    pub(crate) messages: Vec<Row>,
    pub(crate) starts: Vec<Row>,
    pub(crate) renewals: Vec<Row>,
    pub(crate) abandons: Vec<Row>,
    /// The rows of each read.
    pub(crate) texts: Vec<Vec<Row>>,
    /// The rows of each group of fetches.
    pub(crate) turns: Vec<Vec<Row>>,
    pub(crate) activities: Vec<Vec<Row>>,
}

/// The field of [`Done`] for the rows of a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowsOf {
    Begin,
    Nothing,
    Commits,
    Outcomes,
    Messages,
    Starts,
    Renewals,
    Abandons,
    Texts,
    Turns,
    Activities,
}

impl Done {
    pub(crate) fn add(&mut self, rows_of: RowsOf, rows: impl IntoIterator<Item = Row>) {
        let rows: Vec<Row> = rows.into_iter().collect();
        match rows_of {
            RowsOf::Begin | RowsOf::Nothing => {}
            RowsOf::Commits => self.commits = rows,
            RowsOf::Outcomes => self.outcomes = rows,
            RowsOf::Messages => self.messages = rows,
            RowsOf::Starts => self.starts = rows,
            RowsOf::Renewals => self.renewals = rows,
            RowsOf::Abandons => self.abandons = rows,
            RowsOf::Texts => self.texts.push(rows),
            RowsOf::Turns => self.turns.push(rows),
            RowsOf::Activities => self.activities.push(rows),
        }
    }
}
