//! How a model is looked at: the protocol as it is must hold everywhere, and every way to get it wrong must show.

use stateright::{Checker, Expectation, HasDiscoveries, Model};
use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt::Debug;
use std::hash::{Hash, Hasher};

/// The property that no single state shows: wherever things stand, they can still end well. It is looked for in the
/// whole graph, because the checker's own `eventually` may miss a state that it comes to twice.
pub(super) const CAN_END: &str = "everything can still end well";

/// How much of a protocol is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// In every test run.
    Usual,
    /// On demand: more than a million states for each model.
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

    /// What every model must have at least.
    pub(super) fn least_states(self) -> usize {
        match self {
            Self::Usual => 10_000,
            Self::Deep => 1_000_000,
        }
    }
}

/// A model, and the known ways to get its protocol wrong.
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

    /// Each bug, and all properties that it must break.
    const BUGS: &'static [(Self::Bug, &'static [&'static str])];

    fn sound(depth: Depth) -> Self;
    fn with(bug: Self::Bug) -> Self;

    /// Whether nothing is left to be done.
    fn is_over(&self, state: &Self::State) -> bool;

    /// Whether the end may depend on it: nobody counts on a crash, or on somebody who gives up.
    fn helps(&self, action: &Self::Action) -> bool;
}

/// What was done and must never be done, by the name of the property that it breaks.
pub(super) type Wrongs = BTreeSet<&'static str>;

/// The properties that these things are never done.
macro_rules! never {
    ($($wrong:ident),+ $(,)?) => {
        vec![$(stateright::Property::always($wrong, |_, state: &State| !state.wrong.contains($wrong))),+]
    };
}
pub(super) use never;

/// What was seen of a protocol.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) states: usize,
    /// Properties that the protocol as it is breaks, and the shortest way to it.
    pub(super) broken: Vec<(&'static str, String)>,
    /// What should happen sometimes, and never does: a model in which nothing happens breaks no property either.
    pub(super) never_happened: Vec<&'static str>,
    pub(super) bugs: usize,
    pub(super) bugs_found: usize,
    /// Bugs, and a property that they should break and do not.
    pub(super) missed: Vec<(String, &'static str)>,
}

/// Looks at the protocol as it is, and with each of its bugs.
pub(super) fn look_at<P: Protocol>(name: &str) -> Seen {
    let depth = Depth::asked_for();
    let mut seen = Seen { bugs: P::BUGS.len(), ..Seen::default() };
    let checker = P::sound(depth).checker().threads(2).spawn_bfs().join();
    seen.states = checker.unique_state_count();
    println!("{name}: {} states, {} deep", seen.states, checker.max_depth());
    for property in checker.model().properties() {
        let found = checker.discovery(property.name);
        match (property.expectation, found) {
            (Expectation::Sometimes, None) => seen.never_happened.push(property.name),
            (Expectation::Sometimes, Some(_)) | (_, None) => {}
            (_, Some(path)) => seen.broken.push((property.name, format!("{:?}", path.into_actions()))),
        }
    }
    if let Some(way) = dead_end(&P::sound(depth)) {
        seen.broken.push((CAN_END, way));
    }
    for (bug, properties) in P::BUGS {
        let missed: Vec<_> = properties.iter().filter(|property| !breaks(&P::with(*bug), property)).collect();
        seen.bugs_found += usize::from(missed.is_empty());
        seen.missed.extend(missed.into_iter().map(|property| (format!("{bug:?}"), *property)));
    }
    seen
}

/// Whether the model breaks the property; says how.
fn breaks<P: Protocol>(model: &P, property: &'static str) -> bool {
    let way = if property == CAN_END {
        dead_end(model)
    } else {
        assert!(
            model.properties().iter().any(|known| known.name == property),
            "there is no property '{property}'"
        );
        let enough = HasDiscoveries::AllOf(BTreeSet::from([property]));
        let checker = model.clone().checker().finish_when(enough).spawn_bfs().join();
        checker.discovery(property).map(|path| format!("{:?}", path.into_actions()))
    };
    if let Some(way) = &way {
        println!("  not '{property}': {way}");
    }
    way.is_some()
}

/// The way to a state from which the end cannot be reached any more.
fn dead_end<P: Protocol>(model: &P) -> Option<String> {
    let mut graph = Graph::default();
    let mut ahead = VecDeque::new();
    for state in model.init_states() {
        ahead.extend(graph.meet(&state, || None).map(|index| (index, state)));
    }
    while let Some((from, state)) = ahead.pop_front() {
        graph.ends[from] = model.is_over(&state);
        for (action, next) in model.next_steps(&state) {
            let helps = model.helps(&action);
            let to = graph.meet(&next, || Some((from, format!("{action:?}"))));
            if helps {
                graph.edges.push((from, to.unwrap_or_else(|| graph.indices[&digest(&next)])));
            }
            ahead.extend(to.map(|index| (index, next)));
        }
    }
    let index = graph.without_end()?;
    Some(graph.way_to(index))
}

/// All states by number, and how one leads to another.
#[derive(Default)]
struct Graph {
    indices: HashMap<u64, usize>,
    ends: Vec<bool>,
    /// The first way in.
    entries: Vec<Option<(usize, String)>>,
    /// Steps that help.
    edges: Vec<(usize, usize)>,
}

impl Graph {
    /// The number of a state that was not met before.
    fn meet<S: Hash>(&mut self, state: &S, by: impl FnOnce() -> Option<(usize, String)>) -> Option<usize> {
        let index = self.ends.len();
        match self.indices.entry(digest(state)) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(entry) => entry.insert(index),
        };
        self.ends.push(false);
        self.entries.push(by());
        Some(index)
    }

    /// The first state from which no way leads to an end.
    fn without_end(&self) -> Option<usize> {
        let mut edges = self.edges.clone();
        edges.sort_unstable_by_key(|(_, to)| *to);
        let mut can_end = self.ends.clone();
        let mut ahead: Vec<usize> = (0..can_end.len()).filter(|index| can_end[*index]).collect();
        while let Some(to) = ahead.pop() {
            let first = edges.partition_point(|(_, target)| *target < to);
            for (from, _) in edges[first..].iter().take_while(|(_, target)| *target == to) {
                if !std::mem::replace(&mut can_end[*from], true) {
                    ahead.push(*from);
                }
            }
        }
        can_end.iter().position(|can_end| !can_end)
    }

    fn way_to(&self, mut index: usize) -> String {
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
