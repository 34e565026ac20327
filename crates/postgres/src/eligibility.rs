//! The turns and activities for which fetches are eligible, in the form in which the server's functions compare them.

use crate::ask::{ActivityAsk, Ask, TurnAsk};
use crate::text::owned;
use outlast_provider::{DispatcherCapabilityFilter, TagFilter};
use outlast_provider_kit::pin::sort_key;
use outlast_provider_kit::queue::PerQueue;
use std::collections::{BTreeSet, HashSet};

/// The lowest and highest pinned version of each range; `None`: every version.
pub(crate) fn ranges(filter: Option<&DispatcherCapabilityFilter>) -> Option<Vec<(String, String)>> {
    let ranges = &filter?.supported_duroxide_versions;
    Some(ranges.iter().map(|range| (sort_key(&range.min), sort_key(&range.max))).collect())
}

/// Tags as the index of fetchable activities has them; `None`: every tag.
pub(crate) fn tags(filter: &TagFilter) -> Option<Vec<String>> {
    let keys = |tags: &HashSet<String>| -> Vec<String> {
        tags.iter().map(|tag| format!("={}", owned(tag))).collect()
    };
    match filter {
        TagFilter::DefaultOnly => Some(vec![String::new()]),
        TagFilter::Tags(tags) => Some(keys(tags)),
        TagFilter::DefaultAnd(tags) => Some([keys(tags), vec![String::new()]].concat()),
        TagFilter::Any => None,
        TagFilter::None => Some(Vec::new()),
    }
}

/// The owner under which a fetch claims sessions.
pub(crate) fn owner(ask: &ActivityAsk) -> Option<String> {
    ask.session.as_ref().map(|session| owned(&session.owner_id))
}

/// The union of the eligibility of all parked fetches of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Eligibility {
    /// `None`: every version.
    ranges: Option<BTreeSet<(String, String)>>,
    /// `None`: every tag.
    tags: Option<BTreeSet<String>>,
    owners: BTreeSet<String>,
}

impl Default for Eligibility {
    /// The eligibility for no item.
    fn default() -> Self {
        Self { ranges: Some(BTreeSet::new()), tags: Some(BTreeSet::new()), owners: BTreeSet::new() }
    }
}

impl Eligibility {
    /// The union of the eligibility of these fetches.
    pub(crate) fn of<'a>(
        turns: impl Iterator<Item = &'a TurnAsk>,
        activities: impl Iterator<Item = &'a ActivityAsk>,
    ) -> Self {
        let mut all = Self::default();
        let mut before: Option<&TurnAsk> = None;
        for ask in turns {
            // Most processes have fetches of turns with equal terms only.
            if before.replace(ask).is_none_or(|before| !before.is_like(ask)) {
                all.add_turns(ask);
            }
        }
        activities.for_each(|ask| all.add_activities(ask));
        all
    }

    fn add_turns(&mut self, ask: &TurnAsk) {
        widen(&mut self.ranges, ranges(ask.filter.as_ref()));
    }

    fn add_activities(&mut self, ask: &ActivityAsk) {
        widen(&mut self.tags, tags(&ask.tags));
        self.owners.extend(owner(ask));
    }

    /// The union of both eligibilities.
    pub(crate) fn or(mut self, other: Self) -> Self {
        widen(&mut self.ranges, other.ranges);
        widen(&mut self.tags, other.tags);
        self.owners.extend(other.owners);
        self
    }

    /// The queues for which this eligibility exceeds `before`.
    pub(crate) fn extends(&self, before: &Self) -> PerQueue<bool> {
        let both = before.clone().or(self.clone());
        PerQueue {
            turns: both.ranges != before.ranges,
            activities: both.tags != before.tags || both.owners != before.owners,
        }
    }

    /// The eligibility as columns of the row that registers the process.
    pub(crate) fn columns(&self) -> Columns {
        let (lowest, highest) = unzipped(self.ranges.clone());
        Columns {
            lowest,
            highest,
            tags: self.tags.clone().map(Vec::from_iter),
            owners: self.owners.iter().cloned().collect(),
        }
    }
}

/// An eligibility as columns of a row.
pub(crate) struct Columns {
    pub(crate) lowest: Option<Vec<String>>,
    pub(crate) highest: Option<Vec<String>>,
    pub(crate) tags: Option<Vec<String>>,
    pub(crate) owners: Vec<String>,
}

/// Lowest and highest versions of ranges in separate lists.
pub(crate) fn unzipped(
    ranges: Option<impl IntoIterator<Item = (String, String)>>,
) -> (Option<Vec<String>>, Option<Vec<String>>) {
    ranges.map(|ranges| ranges.into_iter().unzip()).unzip()
}

/// Adds elements to a set; `None` stands for everything.
fn widen<T: Ord>(known: &mut Option<BTreeSet<T>>, more: Option<impl IntoIterator<Item = T>>) {
    match (known.as_mut(), more) {
        (Some(known), Some(more)) => known.extend(more),
        _ => *known = None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_provider::{SemverRange, SessionFetchConfig};
    use semver::Version;
    use std::time::Duration;

    fn turns(filter: Option<SemverRange>) -> TurnAsk {
        let filter =
            filter.map(|range| DispatcherCapabilityFilter { supported_duroxide_versions: vec![range] });
        TurnAsk { lock_ms: 1, filter, bound: Default::default() }
    }

    fn activities(tags: TagFilter, owner: Option<&str>) -> ActivityAsk {
        let session = owner.map(|owner| SessionFetchConfig {
            owner_id: owner.to_string(),
            lock_timeout: Duration::from_secs(1),
        });
        ActivityAsk { max_items: 1, lock_ms: 1, session, tags }
    }

    #[test]
    fn eligibility_of_a_process_is_the_union_of_its_fetches() {
        let mut some = Eligibility::default();
        some.add_turns(&turns(Some(SemverRange::new(Version::new(1, 0, 0), Version::new(2, 0, 0)))));
        some.add_activities(&activities(TagFilter::DefaultOnly, Some("one")));
        some.add_activities(&activities(TagFilter::tags(["gpu"]), Some("two")));
        let columns = some.columns();
        assert_eq!((columns.lowest.unwrap().len(), columns.highest.unwrap().len()), (1, 1));
        assert_eq!(columns.tags.unwrap(), ["", "=gpu"]);
        assert_eq!(columns.owners, ["one", "two"]);

        let mut all = some.clone();
        all.add_turns(&turns(None));
        all.add_activities(&activities(TagFilter::Any, None));
        let columns = all.columns();
        assert_eq!((columns.lowest, columns.tags, columns.owners.len()), (None, None, 2));
        assert_eq!(some.clone().or(all.clone()), all);
        assert_eq!(all.clone().or(some), all, "a subset adds nothing");
    }

    #[test]
    fn eligibility_extends_a_queue_only_by_more_ranges_tags_or_owners() {
        let of = |versions: u64, tags: &[&str], owner| {
            let mut all = Eligibility::default();
            let range = SemverRange::new(Version::new(1, 0, 0), Version::new(versions, 0, 0));
            all.add_turns(&turns(Some(range)));
            all.add_activities(&activities(TagFilter::tags(tags.iter().copied()), owner));
            all
        };
        let before = of(2, &["cpu", "gpu"], Some("one"));
        let rows = [
            (of(2, &["cpu", "gpu"], Some("one")), (false, false), "the same"),
            (of(2, &["gpu"], None), (false, false), "less"),
            (of(3, &["gpu"], None), (true, false), "other versions"),
            (of(2, &["tpu"], None), (false, true), "another tag"),
            (of(2, &["gpu"], Some("two")), (false, true), "another owner of sessions"),
            (of(3, &["tpu"], None), (true, true), "both"),
        ];
        for (next, (turns, activities), why) in rows {
            assert_eq!(next.extends(&before), PerQueue { turns, activities }, "{why}");
        }
    }
}
