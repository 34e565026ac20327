//! Checks a model: the protocol without a bug must keep every property, and every bug must break its properties.

use stateright::{Checker, Expectation, HasDiscoveries, Model};
use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt::Debug;
use std::hash::{Hash, Hasher};

/// A liveness property: from every reachable state, an end state can be reached. It is checked on the whole graph,
/// because the checker's own `eventually` can miss a state that it reaches twice.
pub(super) const CAN_END: &str = "an end state can be reached";

/// How many states of a protocol are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// In every test run.
    Usual,
    /// On demand: more than a million states of each model.
    Deep,
}

impl Depth {
    pub(super) fn asked_for() -> Self {
        match std::env::var("OUTLAST_MODEL_DEPTH").as_deref() {
            Ok("deep") => Self::Deep,
            Ok("usual") | Err(_) => Self::Usual,
            Ok(other) => panic!("OUTLAST_MODEL_DEPTH is '{other}': it can be 'usual' or 'deep'"),
        }
    }

    /// The least number of states of every model.
    pub(super) fn least_states(self) -> usize {
        match self {
            Self::Usual => 10_000,
            Self::Deep => 1_000_000,
        }
    }
}

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

    fn sound(depth: Depth) -> Self;
    fn with(bug: Self::Bug) -> Self;

    /// Whether this is an end state.
    fn is_over(&self, state: &Self::State) -> bool;

    /// Whether the path to an end state may use this action. It may not rely on a crash or on a cancellation.
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

/// The result of checking a protocol.
#[derive(Debug, Default)]
pub(super) struct ModelReport {
    pub(super) states: usize,
    /// Properties that the protocol without a bug breaks, with the shortest path.
    pub(super) broken: Vec<(&'static str, String)>,
    /// Situations that should occur and do not. A model without transitions breaks no property either.
    pub(super) never_happened: Vec<&'static str>,
    pub(super) bugs: usize,
    pub(super) bugs_found: usize,
    /// Bugs that do not break a property that they should break.
    pub(super) missed: Vec<(String, &'static str)>,
}

/// Checks a protocol without a bug and with each of its bugs.
pub(super) fn check_model<P: Protocol>(name: &str) -> ModelReport {
    let depth = Depth::asked_for();
    let mut report = ModelReport { bugs: P::BUGS.len(), ..ModelReport::default() };
    let checker = P::sound(depth).checker().threads(2).spawn_bfs().join();
    report.states = checker.unique_state_count();
    println!("{name}: {} states, {} deep", report.states, checker.max_depth());
    for property in checker.model().properties() {
        let found = checker.discovery(property.name);
        match (property.expectation, found) {
            (Expectation::Sometimes, None) => report.never_happened.push(property.name),
            (Expectation::Sometimes, Some(_)) | (_, None) => {}
            (_, Some(path)) => report.broken.push((property.name, format!("{:?}", path.into_actions()))),
        }
    }
    if let Some(path) = path_to_dead_end(&P::sound(depth)) {
        report.broken.push((CAN_END, path));
    }
    for (bug, properties) in P::BUGS {
        let missed: Vec<_> = properties.iter().filter(|property| !breaks(&P::with(*bug), property)).collect();
        report.bugs_found += usize::from(missed.is_empty());
        report.missed.extend(missed.into_iter().map(|property| (format!("{bug:?}"), *property)));
    }
    report
}

/// Whether the model breaks the property; prints the path.
fn breaks<P: Protocol>(model: &P, property: &'static str) -> bool {
    let path = if property == CAN_END {
        path_to_dead_end(model)
    } else {
        assert!(
            model.properties().iter().any(|known| known.name == property),
            "there is no property '{property}'"
        );
        let enough = HasDiscoveries::AllOf(BTreeSet::from([property]));
        let checker = model.clone().checker().finish_when(enough).spawn_bfs().join();
        checker.discovery(property).map(|path| format!("{:?}", path.into_actions()))
    };
    if let Some(path) = &path {
        println!("  not '{property}': {path}");
    }
    path.is_some()
}

/// The path to a state from which no end state can be reached.
fn path_to_dead_end<P: Protocol>(model: &P) -> Option<String> {
    let mut graph = Graph::default();
    let mut frontier = VecDeque::new();
    for state in model.init_states() {
        frontier.extend(graph.add_state(&state, || None).map(|index| (index, state)));
    }
    while let Some((from, state)) = frontier.pop_front() {
        graph.ends[from] = model.is_over(&state);
        for (action, next) in model.next_steps(&state) {
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
