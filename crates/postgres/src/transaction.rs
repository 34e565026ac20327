//! One transaction of a lane, before it is sent.

use crate::ask::{ActivityAsk, Ask, TurnAsk};
use crate::batch::Batch;
use crate::hand_off::HandOffs;
use crate::leased::{LeaseSender, RawActivity, RawTurn};
use crate::notify::Wants;
use crate::parked::Poll;
use crate::queue::PerQueue;
use crate::scheduler::SentLarge;

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
    /// The queues in which the batch makes something fetchable, besides the hand-offs.
    pub(crate) frees: PerQueue<bool>,
    /// What other processes are notified of.
    pub(crate) notifies: Wants,
    /// Whether polls that find nothing ask for the time at which something becomes fetchable. That costs as much as the poll.
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
