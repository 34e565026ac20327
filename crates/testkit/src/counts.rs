//! How often each key occurred.

use std::collections::{BTreeMap, btree_map};

/// A count for each key. A key that never occurred has the count 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts<K>(BTreeMap<K, u64>);

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> Counts<K> {
    /// Counts one occurrence of a key.
    pub fn increment(&mut self, key: K) {
        self.add(key, 1);
    }

    /// Counts several occurrences of a key.
    pub fn add(&mut self, key: K, count: u64) {
        *self.0.entry(key).or_default() += count;
    }

    /// Adds the counts of another run.
    pub fn merge(&mut self, other: &Self)
    where
        K: Clone,
    {
        other.0.iter().for_each(|(key, count)| self.add(key.clone(), *count));
    }

    /// The count of a key.
    pub fn get(&self, key: &K) -> u64 {
        self.0.get(key).copied().unwrap_or(0)
    }

    /// Whether the key occurred.
    pub fn contains(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }

    /// All keys that occurred, in order.
    pub fn keys(&self) -> btree_map::Keys<'_, K, u64> {
        self.0.keys()
    }

    /// All keys that occurred with their counts, in the order of the keys.
    pub fn iter(&self) -> btree_map::Iter<'_, K, u64> {
        self.0.iter()
    }

    /// The counts as a map, for printing.
    pub fn as_map(&self) -> &BTreeMap<K, u64> {
        &self.0
    }

    /// The sum of all counts.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

impl<'a, K> IntoIterator for &'a Counts<K> {
    type Item = (&'a K, &'a u64);
    type IntoIter = btree_map::Iter<'a, K, u64>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_counts_add_up() {
        let (mut one, mut other) = (Counts::default(), Counts::default());
        one.add("a", 2);
        other.add("b", 3);
        other.increment("a");
        one.merge(&other);
        assert_eq!(one.iter().collect::<Vec<_>>(), [(&"a", &3), (&"b", &3)]);
        assert_eq!((one.total(), one.get(&"c"), one.contains(&"c")), (6, 0, false));
    }
}
