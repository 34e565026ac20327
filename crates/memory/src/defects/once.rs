//! Broken keys of messages.

use super::{Defect, Rules};
use crate::rules::{Contract, OnceRules};
use crate::state::State;

impl OnceRules for Rules {
    fn is_repeated(&self, state: &State, instance: &str, key: &str) -> bool {
        match self.defect {
            Some(Defect::OnceForgetsKey) => false,
            Some(Defect::OnceKeyIsGlobal) => state.message_keys.values().any(|keys| keys.contains(key)),
            _ => Contract.is_repeated(state, instance, key),
        }
    }

    fn refuse_key(&self, state: &mut State, instance: &str, key: &str) {
        match self.defect {
            Some(Defect::OnceKeepsRefusedKey) => state.keep_key(instance, key),
            _ => Contract.refuse_key(state, instance, key),
        }
    }

    fn delete_keys(&self, state: &mut State, instance: &str) {
        if self.defect != Some(Defect::DeleteKeepsMessageKeys) {
            Contract.delete_keys(state, instance);
        }
    }
}
