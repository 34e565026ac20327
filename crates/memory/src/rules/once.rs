//! Messages that are stored at most once.

use crate::state::State;

pub(crate) trait OnceRules {
    /// A key belongs to one instance.
    fn is_repeated(&self, state: &State, instance: &str, key: &str) -> bool {
        state.message_keys.get(instance).is_some_and(|keys| keys.contains(key))
    }

    /// The key of a message that is not stored stays free.
    fn refuse_key(&self, _state: &mut State, _instance: &str, _key: &str) {}

    /// Deletion removes the keys, so that a new instance with the same id takes the messages again.
    fn delete_keys(&self, state: &mut State, instance: &str) {
        state.message_keys.remove(instance);
    }
}
