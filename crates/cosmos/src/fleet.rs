//! The runtimes of a container, as this process knows them, and the runtime that looks for each kind of work.
//!
//! | work | found by |
//! |---|---|
//! | messages | the runtime that owns the dispatch slot of the instance in the slot table |
//! | activities | a worker. The workers with the same filter of tags share the dispatch slots equally, by the order of their ids |
//!
//! This knowledge is advisory. Two processes with different knowledge try the same work, and `If-Match` lets one of them win.

use crate::ids::Uid;
use crate::slots::{Heartbeat, SLOTS, Slot, Table, may_serve};
use outlast_provider::TagFilter;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The document of a heartbeat, without its envelope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Member {
    #[serde(rename = "r")]
    pub(crate) runtime: Uid,
    /// The time of the heartbeat.
    #[serde(rename = "ms", with = "crate::number")]
    pub(crate) at_ms: u64,
    /// Whether the process fetches turns.
    #[serde(rename = "turns", default)]
    pub(crate) takes_turns: bool,
    /// Whether the process has its slots from its program. It then owns none in the slot table.
    #[serde(rename = "leased", default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) has_leases: bool,
    /// The filters of a process that fetches activities, as [`group_of`] writes them.
    #[serde(rename = "work", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) activities: Vec<String>,
}

impl Member {
    /// Whether the process gets slots in the slot table.
    pub(crate) fn shares_table(&self) -> bool {
        self.takes_turns && !self.has_leases
    }

    pub(crate) fn heartbeat(&self) -> Heartbeat {
        Heartbeat { runtime: self.runtime, at_ms: self.at_ms }
    }
}

/// A filter of tags as a text. Filters that match the same tags have the same text.
pub(crate) fn group_of(filter: &TagFilter) -> String {
    let sorted = |tags: &std::collections::HashSet<String>| {
        let mut tags: Vec<&String> = tags.iter().collect();
        tags.sort_unstable();
        serde_json::to_string(&tags).unwrap_or_default()
    };
    match filter {
        TagFilter::DefaultOnly => "default".to_string(),
        TagFilter::Tags(tags) => format!("tags {}", sorted(tags)),
        TagFilter::DefaultAnd(tags) => format!("default and {}", sorted(tags)),
        TagFilter::Any => "any".to_string(),
        TagFilter::None => "none".to_string(),
    }
}

/// The knowledge of this process about the runtimes.
#[derive(Clone, Debug)]
pub(crate) struct Fleet {
    own: Uid,
    table: Table,
    /// The slots of this process, if its program hands them out.
    leased: Option<BTreeSet<u8>>,
    /// All runtimes with a heartbeat; none before the first read.
    members: Option<Vec<Member>>,
    /// The runtimes that were live at the last read.
    live: Vec<Uid>,
    /// The time at which the last accepted heartbeat of this process was sent, by its own clock.
    renewed_ms: Option<u64>,
}

impl Fleet {
    pub(crate) fn new(own: Uid) -> Self {
        Self { own, table: Table::default(), leased: None, members: None, live: Vec::new(), renewed_ms: None }
    }

    /// Whether the process has read the heartbeats.
    pub(crate) fn is_known(&self) -> bool {
        self.members.is_some()
    }

    /// Records the table and the heartbeats that the process has read. Returns whether the process must look for work: it owns
    /// slots that it did not own before, or a runtime died and may have left leases.
    pub(crate) fn learn(
        &mut self,
        table: Table,
        members: Vec<Member>,
        renewed_ms: Option<u64>,
        now_ms: u64,
    ) -> bool {
        let gains = |(after, before): (&Slot, &Slot)| {
            after.owner == Some(self.own) && (before.owner != after.owner || before.epoch != after.epoch)
        };
        let has_gained = table.slots().iter().zip(self.table.slots()).any(gains);
        let before: Vec<Uid> = std::mem::take(&mut self.live);
        (self.table, self.members) = (table, Some(members));
        self.live = self.live(now_ms).map(|member| member.runtime).collect();
        self.renewed_ms = renewed_ms.or(self.renewed_ms);
        has_gained || before.iter().any(|runtime| !self.live.contains(runtime))
    }

    /// Records the slots that the program gives to this process. Returns whether one of them is new.
    pub(crate) fn lease(&mut self, slots: BTreeSet<u8>) -> bool {
        let before = self.leased.replace(slots).unwrap_or_default();
        self.leased.iter().flatten().any(|slot| !before.contains(slot))
    }

    /// Forgets the runtimes: the process has stopped fetching.
    pub(crate) fn forget(&mut self) {
        *self = Self::new(self.own);
    }

    fn live(&self, now_ms: u64) -> impl Iterator<Item = &Member> {
        let members = self.members.iter().flatten();
        members.filter(move |member| member.heartbeat().is_live(now_ms))
    }

    /// Whether this process owns the slot in the table and renews its heartbeat: other runtimes need no hints of the slot's work.
    pub(crate) fn owns(&self, slot: u8, monotonic_ms: u64) -> bool {
        let renews = self.renewed_ms.is_some_and(|renewed_ms| may_serve(renewed_ms, monotonic_ms));
        let has_slot = match &self.leased {
            Some(leased) => leased.contains(&slot),
            None => self.owner(slot) == Some(self.own),
        };
        renews && has_slot
    }

    fn owner(&self, slot: u8) -> Option<Uid> {
        self.table.slots().get(usize::from(slot)).and_then(|slot| slot.owner)
    }

    /// Whether this process looks for the slot's messages: it owns the slot, or no live runtime does. A process with slots of its
    /// program does not know the slots of others, and looks for its own only.
    pub(crate) fn serves(&self, slot: u8, now_ms: u64, monotonic_ms: u64) -> bool {
        match self.owner(slot) {
            _ if self.leased.is_some() => self.owns(slot, monotonic_ms),
            Some(owner) if owner == self.own => self.owns(slot, monotonic_ms),
            Some(owner) => !self.live(now_ms).any(|member| member.runtime == owner && member.shares_table()),
            None => true,
        }
    }

    /// Whether this process is the worker that looks for the slot's activities, among the live workers of its filter. The worker
    /// `except` leaves the activity to another worker.
    pub(crate) fn works(&self, slot: u8, group: &str, except: Option<Uid>, now_ms: u64) -> bool {
        let mut workers: Vec<Uid> = self
            .live(now_ms)
            .filter(|member| member.activities.iter().any(|member| member == group))
            .map(|member| member.runtime)
            .chain([self.own])
            .filter(|worker| Some(*worker) != except)
            .collect();
        workers.sort_unstable();
        workers.dedup();
        let nth = usize::from(slot) * workers.len() / SLOTS;
        workers.get(nth) == Some(&self.own)
    }

    /// The time at which the first of the other runtimes that were live at the last read counts as dead, unless it renews.
    pub(crate) fn first_expiry(&self) -> Option<u64> {
        let others = self.members.iter().flatten();
        let others =
            others.filter(|member| member.runtime != self.own && self.live.contains(&member.runtime));
        others.map(|member| member.heartbeat().expires_at()).min()
    }

    /// Whether another live process fetches turns. True before the first read.
    pub(crate) fn has_other_turn_takers(&self, now_ms: u64) -> bool {
        !self.is_known() || self.live(now_ms).any(|member| member.runtime != self.own && member.takes_turns)
    }

    /// Whether another live process fetches activities. True before the first read.
    pub(crate) fn has_other_workers(&self, now_ms: u64) -> bool {
        !self.is_known()
            || self.live(now_ms).any(|member| member.runtime != self.own && !member.activities.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slots::{LEASE_MS, SKEW_MS};

    const NOW: u64 = 1_000_000;
    const OWN: Uid = Uid(1);
    const OTHER: Uid = Uid(2);

    fn member(runtime: Uid, takes_turns: bool, activities: Option<&str>) -> Member {
        let activities = activities.map(str::to_string).into_iter().collect();
        Member { runtime, at_ms: NOW, takes_turns, has_leases: false, activities }
    }

    fn served(fleet: &Fleet, now_ms: u64, monotonic_ms: u64) -> Vec<u8> {
        (0..=u8::MAX).filter(|slot| fleet.serves(*slot, now_ms, monotonic_ms)).collect()
    }

    /// A fleet in which this process owns the first half of the slots, and another runtime the rest.
    fn halves() -> Fleet {
        let members = vec![member(OWN, true, None), member(OTHER, true, None)];
        let beats: Vec<Heartbeat> = members.iter().map(Member::heartbeat).collect();
        let table = Table::default().rebalanced(OWN, &beats, NOW).unwrap();
        let mut fleet = Fleet::new(OWN);
        assert!(fleet.learn(table.clone(), members.clone(), Some(NOW), NOW), "slots are gained");
        assert!(!fleet.learn(table, members, Some(NOW), NOW), "the same slots are not gained twice");
        fleet
    }

    #[test]
    fn before_the_first_read_a_process_serves_all_slots_and_owns_none() {
        let fleet = Fleet::new(OWN);
        assert_eq!(served(&fleet, NOW, NOW).len(), SLOTS);
        assert!(!fleet.owns(0, NOW), "its writes need hints");
        assert!(fleet.has_other_turn_takers(NOW) && fleet.has_other_workers(NOW));
    }

    #[test]
    fn a_process_serves_its_slots_and_those_of_dead_runtimes() {
        let fleet = halves();
        assert_eq!(served(&fleet, NOW, NOW), (0..=127).collect::<Vec<u8>>());
        assert!(fleet.owns(0, NOW) && !fleet.owns(200, NOW));
        let late = NOW + LEASE_MS + SKEW_MS;
        assert_eq!(served(&fleet, late, NOW).len(), SLOTS, "the other runtime is dead");
        assert!(!fleet.owns(200, NOW), "the slot of a dead runtime is not owned");
    }

    #[test]
    fn a_process_whose_heartbeats_are_not_accepted_serves_nothing() {
        assert_eq!(served(&halves(), NOW, NOW + LEASE_MS), Vec::<u8>::new());
    }

    #[test]
    fn a_process_with_slots_of_its_program_serves_those_alone_and_none_without_heartbeats() {
        let mut fleet = halves();
        assert!(fleet.lease([3, 200].into()));
        assert!(!fleet.lease([200].into()), "no slot is new");
        assert_eq!(served(&fleet, NOW, NOW), [200]);
        assert!(fleet.owns(200, NOW) && !fleet.owns(3, NOW));
        assert_eq!(served(&fleet, NOW, NOW + LEASE_MS), Vec::<u8>::new());
        fleet.forget();
        assert_eq!(served(&fleet, NOW, NOW).len(), SLOTS, "as before the first look");
        let leased = Member { has_leases: true, ..member(OTHER, true, None) };
        assert!(!leased.shares_table() && member(OTHER, true, None).shares_table());
    }

    #[test]
    fn workers_with_the_same_filter_share_the_slots() {
        let mut one = Fleet::new(OWN);
        let members = vec![
            member(OWN, false, Some("any")),
            member(OTHER, false, Some("any")),
            member(Uid(3), false, Some("default")),
        ];
        one.learn(Table::default(), members.clone(), Some(NOW), NOW);
        let mut other = Fleet::new(OTHER);
        other.learn(Table::default(), members, Some(NOW), NOW);
        for slot in 0..=u8::MAX {
            let works = (one.works(slot, "any", None, NOW), other.works(slot, "any", None, NOW));
            assert_eq!(works, (slot < 128, slot >= 128), "{slot}");
            assert!(other.works(slot, "any", Some(OWN), NOW), "an activity that a worker leaves to others");
        }
        assert!(one.works(200, "any", None, NOW + LEASE_MS + SKEW_MS), "the other worker is dead");
    }

    #[test]
    fn the_end_of_a_runtime_starts_a_search_for_its_leases() {
        let mut fleet = halves();
        let (table, alive) = (fleet.table.clone(), vec![member(OWN, true, None)]);
        assert!(fleet.learn(table.clone(), alive.clone(), Some(NOW), NOW));
        assert!(!fleet.learn(table, alive, Some(NOW), NOW));
    }

    #[test]
    fn equal_filters_are_one_group() {
        let tags = |tags: [&str; 2]| group_of(&TagFilter::tags(tags));
        assert_eq!(tags(["a", "b"]), tags(["b", "a"]));
        let groups = [
            tags(["a", "b"]),
            group_of(&TagFilter::default_and(["a", "b"])),
            group_of(&TagFilter::Any),
            group_of(&TagFilter::DefaultOnly),
        ];
        assert_eq!(groups.iter().collect::<BTreeSet<_>>().len(), 4);
    }
}
