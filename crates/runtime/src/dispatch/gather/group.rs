//! The activities of an instance that this runtime has leased, and their outcomes that wait for the other outcomes.

use crate::dispatch::skip::Skip;
use outlast_provider::LeasedOutcome;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// An instance and its execution.
type Key = (Arc<str>, u64);

/// The groups of a runtime.
#[derive(Default)]
pub(crate) struct Gathering {
    state: Mutex<State>,
    /// Orchestrations whose outcomes waited and were then committed alone.
    backoff: Mutex<HashMap<String, Skip>>,
}

#[derive(Default)]
struct State {
    groups: HashMap<Key, Group>,
    /// The number of members so far.
    members: u64,
}

/// The leased activities of one execution.
#[derive(Default)]
struct Group {
    /// The activities whose outcomes may gather, with the number of the member.
    leased: BTreeMap<u64, u64>,
    /// The outcomes that wait, in the order of their return. Their activities are in `leased`.
    waiting: Vec<Waiting>,
}

struct Waiting {
    id: u64,
    outcome: LeasedOutcome,
    accepted: oneshot::Sender<()>,
}

/// The result of adding an outcome to its group.
pub(super) enum Joined {
    /// The outcome is committed alone: this runtime has not leased all open activities, or the turn does not wait for them.
    Alone,
    /// The outcome waits. The sender is dropped if the outcome is to be committed alone.
    Waits(oneshot::Receiver<()>),
    /// The outcome is the last: all outcomes of the group, and the senders of the outcomes that waited.
    Last(Vec<LeasedOutcome>, Vec<oneshot::Sender<()>>),
}

/// An activity that this runtime has leased. When it is dropped, outcomes that wait for the activity are committed alone.
pub(crate) struct Member {
    gathering: Arc<Gathering>,
    key: Key,
    id: u64,
    number: u64,
}

impl Member {
    pub(super) fn gathering(&self) -> &Arc<Gathering> {
        &self.gathering
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn execution_id(&self) -> u64 {
        self.key.1
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.gathering.leave(self);
    }
}

impl Gathering {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn backoff(&self) -> MutexGuard<'_, HashMap<String, Skip>> {
        self.backoff.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists an activity that was just leased.
    pub(crate) fn enter(self: &Arc<Self>, instance: Arc<str>, execution_id: u64, id: u64) -> Member {
        let key = (instance, execution_id);
        let mut state = self.lock();
        state.members += 1;
        let number = state.members;
        state.groups.entry(key.clone()).or_default().leased.insert(id, number);
        drop(state);
        Member { gathering: Arc::clone(self), key, id, number }
    }

    /// Whether this runtime has leased all open activities.
    pub(super) fn has_all(&self, member: &Member, open: &BTreeSet<u64>) -> bool {
        self.lock().groups.get(&member.key).is_some_and(|group| group.has_all(open))
    }

    /// Adds an outcome. The outcome is the last if the group then has the outcomes of all open activities.
    pub(super) fn join(&self, member: &Member, outcome: LeasedOutcome, open: &BTreeSet<u64>) -> Joined {
        let mut state = self.lock();
        let Some(group) = state.groups.get_mut(&member.key) else { return Joined::Alone };
        let gathered: BTreeSet<u64> =
            group.waiting.iter().map(|waiting| waiting.id).chain([member.id]).collect();
        let is_listed = group.leased.get(&member.id) == Some(&member.number);
        if !is_listed || !group.has_all(open) || !gathered.is_subset(open) {
            group.waiting.clear();
            return Joined::Alone;
        }
        if gathered != *open {
            let (accepted, answered) = oneshot::channel();
            group.waiting.push(Waiting { id: member.id, outcome, accepted });
            return Joined::Waits(answered);
        }
        let (outcomes, others): (Vec<_>, Vec<_>) =
            group.waiting.drain(..).map(|waiting| (waiting.outcome, waiting.accepted)).unzip();
        group.leased.retain(|id, _| !open.contains(id));
        if group.leased.is_empty() {
            state.groups.remove(&member.key);
        }
        Joined::Last(outcomes.into_iter().chain([outcome]).collect(), others)
    }

    /// Removes a member and all outcomes that wait for this member. Returns `false` if the member was removed before.
    pub(super) fn leave(&self, member: &Member) -> bool {
        let mut state = self.lock();
        let Some(group) = state.groups.get_mut(&member.key) else { return false };
        if group.leased.get(&member.id) != Some(&member.number) {
            return false;
        }
        group.leased.remove(&member.id);
        group.waiting.clear();
        if group.leased.is_empty() {
            state.groups.remove(&member.key);
        }
        true
    }

    /// Whether an outcome of this orchestration may wait for other outcomes.
    pub(super) fn may_try(&self, orchestration: &str) -> bool {
        self.backoff().get_mut(orchestration).is_none_or(Skip::may_try)
    }

    /// Records whether the outcomes of an instance of this orchestration were committed together, or waited and were committed alone.
    pub(super) fn tried(&self, orchestration: &str, succeeded: bool) {
        let mut backoff = self.backoff();
        if succeeded {
            backoff.remove(orchestration);
        } else if let Some(skip) = backoff.get_mut(orchestration) {
            skip.on_failure();
        } else {
            let mut skip = Skip::default();
            skip.on_failure();
            backoff.insert(orchestration.to_string(), skip);
        }
    }
}

impl Group {
    fn has_all(&self, open: &BTreeSet<u64>) -> bool {
        open.iter().all(|id| self.leased.contains_key(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_model::WorkItem;

    fn outcome(id: u64) -> LeasedOutcome {
        let completion = WorkItem::ActivityCompleted {
            instance: "i".to_string(),
            execution_id: 1,
            id,
            result: String::new(),
        };
        LeasedOutcome { lock_token: id.to_string(), completion }
    }

    fn enter(gathering: &Arc<Gathering>, execution_id: u64, id: u64) -> Member {
        gathering.enter("i".into(), execution_id, id)
    }

    fn join(gathering: &Gathering, member: &Member, open: &[u64]) -> Joined {
        gathering.join(member, outcome(member.id), &open.iter().copied().collect())
    }

    fn waits(joined: Joined) -> oneshot::Receiver<()> {
        match joined {
            Joined::Waits(answered) => answered,
            Joined::Alone => panic!("alone"),
            Joined::Last(..) => panic!("the last"),
        }
    }

    #[test]
    fn the_outcome_that_completes_the_open_activities_is_the_last() {
        let gathering = Arc::new(Gathering::default());
        let [a, b, c] = [2, 3, 4].map(|id| enter(&gathering, 1, id));
        let other = enter(&gathering, 2, 5);
        let mut second = waits(join(&gathering, &b, &[2, 3, 4]));
        let _first = waits(join(&gathering, &a, &[2, 3, 4]));
        assert!(matches!(join(&gathering, &other, &[2, 3, 4, 5]), Joined::Alone), "another execution");
        let Joined::Last(outcomes, senders) = join(&gathering, &c, &[2, 3, 4]) else {
            panic!("not the last")
        };
        let tokens: Vec<&str> = outcomes.iter().map(|outcome| outcome.lock_token.as_str()).collect();
        assert_eq!(tokens, ["3", "2", "4"], "in the order of their return");
        senders.into_iter().for_each(|sender| sender.send(()).unwrap());
        assert_eq!(second.try_recv(), Ok(()));
        assert!(!gathering.leave(&a), "the group has ended");
        drop((a, b, c, other));
        assert!(gathering.lock().groups.is_empty());
    }

    #[test]
    fn an_activity_that_is_not_leased_here_is_not_waited_for() {
        let gathering = Arc::new(Gathering::default());
        let [a, b] = [2, 3].map(|id| enter(&gathering, 1, id));
        assert!(matches!(join(&gathering, &a, &[2, 3, 4]), Joined::Alone));
        assert!(!gathering.has_all(&a, &BTreeSet::from([2, 3, 4])));
        assert!(gathering.has_all(&a, &BTreeSet::from([2, 3])));
        let mut waiting = waits(join(&gathering, &a, &[2, 3]));
        assert!(matches!(join(&gathering, &b, &[3]), Joined::Alone), "the turn does not wait for the other");
        assert!(waiting.try_recv().is_err(), "the other is committed alone");
    }

    #[test]
    fn a_member_that_leaves_releases_the_outcomes_that_wait_for_it() {
        let gathering = Arc::new(Gathering::default());
        let [a, b] = [2, 3].map(|id| enter(&gathering, 1, id));
        let mut waiting = waits(join(&gathering, &a, &[2, 3]));
        drop(b);
        assert!(waiting.try_recv().is_err());
        assert!(matches!(join(&gathering, &a, &[2, 3]), Joined::Alone));
        assert!(gathering.leave(&a) && !gathering.leave(&a));
        assert!(gathering.lock().groups.is_empty());
    }

    #[test]
    fn a_second_delivery_of_an_activity_replaces_the_first() {
        let gathering = Arc::new(Gathering::default());
        let [first, other] = [2, 3].map(|id| enter(&gathering, 1, id));
        let second = enter(&gathering, 1, 2);
        assert!(matches!(join(&gathering, &first, &[2, 3]), Joined::Alone));
        drop(first);
        let _waiting = waits(join(&gathering, &other, &[2, 3]));
        assert!(matches!(join(&gathering, &second, &[2, 3]), Joined::Last(..)));
    }

    #[test]
    fn outcomes_that_waited_and_were_committed_alone_skip_the_next_waits() {
        let gathering = Arc::new(Gathering::default());
        gathering.tried("O", false);
        assert!(!gathering.may_try("O"));
        assert!(gathering.may_try("O") && gathering.may_try("P"));
        gathering.tried("O", false);
        assert!(!gathering.may_try("O"));
        gathering.tried("O", true);
        assert!(gathering.may_try("O"));
    }
}
