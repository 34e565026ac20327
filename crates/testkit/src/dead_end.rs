//! Searches a model for a state from which no end state can be reached.

use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::hash::{Hash, Hasher};

/// The states of a model and the steps between them.
pub trait StateGraph {
    /// A state of the model; states with equal hashes count as one.
    type State: Hash;
    /// The name of a step.
    type Action: Debug;

    /// The states in which the model begins.
    fn first_states(&self) -> Vec<Self::State>;

    /// The steps from a state, with the states that they lead to.
    fn steps(&self, state: &Self::State) -> Vec<(Self::Action, Self::State)>;

    /// Whether this is an end state.
    fn is_over(&self, state: &Self::State) -> bool;

    /// Whether the path to an end state may use this action.
    fn helps(&self, action: &Self::Action) -> bool;
}

/// The shortest path to a state from which no end state can be reached. Panics if the model has more than `most_states` states.
pub fn path_to_dead_end<G: StateGraph>(model: &G, most_states: usize) -> Option<String> {
    let mut graph = Graph::default();
    let mut frontier = VecDeque::new();
    for state in model.first_states() {
        frontier.extend(graph.add_state(&state, || None).map(|index| (index, state)));
    }
    while let Some((from, state)) = frontier.pop_front() {
        assert!(graph.ends.len() <= most_states, "the model has more than {most_states} states");
        graph.ends[from] = model.is_over(&state);
        for (action, next) in model.steps(&state) {
            let helps = model.helps(&action);
            let to = graph.add_state(&next, || Some((from, format!("{action:?}"))));
            if helps {
                graph.edges.push((from, to.unwrap_or_else(|| graph.indices[&digest(&next)])));
            }
            frontier.extend(to.map(|index| (index, next)));
        }
    }
    let index = graph.first_dead_end()?;
    Some(graph.path_to(index))
}

/// All states by number, and the steps between them.
#[derive(Default)]
struct Graph {
    indices: HashMap<u64, usize>,
    ends: Vec<bool>,
    /// The first step that reached each state.
    entries: Vec<Option<(usize, String)>>,
    /// Steps that may be part of a path to an end state.
    edges: Vec<(usize, usize)>,
}

impl Graph {
    /// The number of a state that is new.
    fn add_state<S: Hash>(
        &mut self,
        state: &S,
        by: impl FnOnce() -> Option<(usize, String)>,
    ) -> Option<usize> {
        let index = self.ends.len();
        match self.indices.entry(digest(state)) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(entry) => entry.insert(index),
        };
        self.ends.push(false);
        self.entries.push(by());
        Some(index)
    }

    /// The first state from which no path leads to an end state.
    fn first_dead_end(&self) -> Option<usize> {
        let mut edges = self.edges.clone();
        edges.sort_unstable_by_key(|(_, to)| *to);
        let mut can_end = self.ends.clone();
        let mut frontier: Vec<usize> = (0..can_end.len()).filter(|index| can_end[*index]).collect();
        while let Some(to) = frontier.pop() {
            let first = edges.partition_point(|(_, target)| *target < to);
            for (from, _) in edges[first..].iter().take_while(|(_, target)| *target == to) {
                if !std::mem::replace(&mut can_end[*from], true) {
                    frontier.push(*from);
                }
            }
        }
        can_end.iter().position(|can_end| !can_end)
    }

    fn path_to(&self, mut index: usize) -> String {
        let mut steps = Vec::new();
        while let Some((from, action)) = &self.entries[index] {
            steps.push(action.as_str());
            index = *from;
        }
        steps.reverse();
        format!("[{}]", steps.join(", "))
    }
}

fn digest(state: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from 0 on, with the steps between them; the last one is the end.
    struct Numbers {
        steps: Vec<(u8, u8)>,
        crash: (u8, u8),
        end: u8,
    }

    impl StateGraph for Numbers {
        type State = u8;
        type Action = (u8, u8);

        fn first_states(&self) -> Vec<u8> {
            vec![0]
        }

        fn steps(&self, state: &u8) -> Vec<((u8, u8), u8)> {
            let steps = self.steps.iter().filter(|(from, _)| from == state);
            steps.map(|step| (*step, step.1)).collect()
        }

        fn is_over(&self, state: &u8) -> bool {
            *state == self.end
        }

        fn helps(&self, action: &(u8, u8)) -> bool {
            *action != self.crash
        }
    }

    #[test]
    fn dead_end_is_found_with_its_path_and_a_crash_is_no_way_out() {
        let search = |steps: &[(u8, u8)], crash| {
            path_to_dead_end(&Numbers { steps: steps.to_vec(), crash, end: 9 }, 10)
        };
        let none = (7, 7);
        assert_eq!(search(&[(0, 1), (1, 0), (1, 9)], none), None);
        assert_eq!(search(&[(0, 9), (0, 1), (1, 2)], none).as_deref(), Some("[(0, 1)]"));
        assert_eq!(search(&[(0, 1), (1, 2), (2, 1), (1, 9)], none), None);
        assert_eq!(search(&[(0, 9), (0, 1), (1, 9)], (1, 9)).as_deref(), Some("[(0, 1)]"));
    }

    #[test]
    #[should_panic(expected = "more than 2 states")]
    fn model_with_too_many_states_is_refused() {
        let numbers = Numbers { steps: vec![(0, 1), (1, 2), (2, 3)], crash: (7, 7), end: 3 };
        path_to_dead_end(&numbers, 2);
    }
}
