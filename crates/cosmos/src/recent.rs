//! Messages that this process consumed a short time ago.

use std::collections::{HashSet, VecDeque};

/// The most messages that are remembered.
const MOST: usize = 4_096;

/// The last messages that were consumed: instance, and number of the message.
#[derive(Default)]
pub(crate) struct Recent {
    order: VecDeque<(String, u64)>,
    members: HashSet<(String, u64)>,
}

impl Recent {
    pub(crate) fn insert(&mut self, instance: &str, sequence: u64) {
        let key = (instance.to_string(), sequence);
        if self.members.insert(key.clone()) {
            self.order.push_back(key);
        }
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.members.remove(&oldest);
        }
    }

    pub(crate) fn contains(&self, instance: &str, sequence: u64) -> bool {
        self.members.contains(&(instance.to_string(), sequence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_message_is_forgotten_first() {
        let mut recent = Recent::default();
        (0..=MOST).for_each(|n| recent.insert("i", n as u64));
        recent.insert("i", 7);
        assert!(!recent.contains("i", 0) && recent.contains("i", 1) && !recent.contains("j", 1));
        assert_eq!(recent.order.len(), MOST);
    }
}
