//! Checks a model: the protocol without a bug must keep every property, and every bug must break its properties.

use stateright::{Checker, Expectation, HasDiscoveries, Model};
use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt::Debug;
use std::hash::{Hash, Hasher};

/// A liveness property: from every reachable state, an end state can be reached. It is checked on the whole graph, because the
/// checker's own `eventually` can miss a state that it reaches twice.
pub(super) const CAN_END: &str = "an end state can be reached";

/// A model with more states has become too large for every test run.
const MOST_STATES: usize = 600_000;

/// A model and its known bugs.
pub(super) trait Protocol:
    Model<
        State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
        Action: Clone + Debug + PartialEq + Send + Sync,
    > + Clone
    + Send
    + Sync
    + 'static
{
    type Bug: Copy + Debug + Send + Sync + 'static;

    /// Each bug with all properties that it must break.
    const BUGS: &'static [(Self::Bug, &'static [&'static str])];

    /// The protocol with a bug, or without one, with different bounds: together they show every situation.
    fn models(bug: Option<Self::Bug>) -> Vec<Self>;

    /// Whether this is an end state.
    fn is_over(&self, state: &Self::State) -> bool;

    /// Whether the path to an end state may use this action. It may not rely on a crash.
    fn helps(&self, action: &Self::Action) -> bool;
}

/// Forbidden events that happened, by the name of the property that they break.
pub(super) type ForbiddenEvents = BTreeSet<&'static str>;

/// Properties that state that these events never happen.
macro_rules! never {
    ($($forbidden:ident),+ $(,)?) => {
        vec![$(stateright::Property::always($forbidden, |_, state: &State| !state.forbidden.contains($forbidden))),+]
    };
}
pub(super) use never;

/// Checks the protocol without a bug. The number of its states.
pub(super) fn check_sound<P: Protocol>(name: &str) -> usize {
    let (mut states, mut never_happened) = (0, Vec::new());
    for (nth, model) in P::models(None).into_iter().enumerate() {
        let checker = model.clone().checker().target_state_count(2 * MOST_STATES).spawn_bfs().join();
        let found = checker.unique_state_count();
        println!("{name} {nth}: {found} states, {} deep", checker.max_depth());
        assert!(found < MOST_STATES, "{name} {nth} has more than {found} states");
        states += found;
        let mut unseen = Vec::new();
        for property in checker.model().properties() {
            match (property.expectation, checker.discovery(property.name)) {
                (Expectation::Sometimes, None) => unseen.push(property.name),
                (Expectation::Sometimes, Some(_)) | (_, None) => {}
                (_, Some(path)) => {
                    let last = path.last_state().clone();
                    panic!("{name} {nth} breaks '{}': {:?}\n{last:#?}", property.name, path.into_actions());
                }
            }
        }
        never_happened.push(unseen);
        if let Some(path) = path_to_dead_end(&model) {
            panic!("{name} {nth} breaks '{CAN_END}': {path}");
        }
    }
    let (first, others) = never_happened.split_first().expect("a protocol has a model");
    let unseen = first.iter().copied().filter(|name| others.iter().all(|unseen| unseen.contains(name)));
    assert_eq!(unseen.collect::<Vec<_>>(), [""; 0], "a model in which nothing happens keeps every property");
    states
}

/// Checks that every bug breaks its properties.
pub(super) fn check_bugs<P: Protocol>() {
    let mut missed = Vec::new();
    for (bug, properties) in P::BUGS {
        assert!(!properties.is_empty(), "{bug:?} breaks nothing");
        for property in *properties {
            if !P::models(Some(*bug)).iter().any(|model| breaks(model, *bug, property)) {
                missed.push(format!("{bug:?} keeps '{property}'"));
            }
        }
    }
    assert_eq!(missed, [""; 0]);
}

/// Whether the model breaks the property; prints the path.
fn breaks<P: Protocol>(model: &P, bug: P::Bug, property: &'static str) -> bool {
    let path = if property == CAN_END {
        path_to_dead_end(model)
    } else {
        let is_known = model.properties().iter().any(|known| known.name == property);
        assert!(is_known, "there is no property '{property}'");
        let enough = HasDiscoveries::AllOf(BTreeSet::from([property]));
        let checker = model
            .clone()
            .checker()
            .finish_when(enough)
            .target_state_count(2 * MOST_STATES)
            .spawn_bfs()
            .join();
        checker.discovery(property).map(|path| format!("{:?}", path.into_actions()))
    };
    if let Some(path) = &path {
        println!("  {bug:?} breaks '{property}': {path}");
    }
    path.is_some()
}

/// The path to a state from which no end state can be reached.
fn path_to_dead_end<P: Protocol>(model: &P) -> Option<String> {
    let mut graph = Graph::default();
    let mut frontier = VecDeque::new();
    for state in model.init_states() {
        frontier.extend(graph.add_state(&state, None).map(|index| (index, state)));
    }
    while let Some((from, state)) = frontier.pop_front() {
        assert!(graph.ends.len() < MOST_STATES, "more than {MOST_STATES} states");
        graph.ends[from] = model.is_over(&state);
        for (action, next) in model.next_steps(&state) {
            let helps = model.helps(&action);
            let to = graph.add_state(&next, Some((from, format!("{action:?}"))));
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
    fn add_state<S: Hash>(&mut self, state: &S, by: Option<(usize, String)>) -> Option<usize> {
        let index = self.ends.len();
        match self.indices.entry(digest(state)) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(entry) => entry.insert(index),
        };
        self.ends.push(false);
        self.entries.push(by);
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
