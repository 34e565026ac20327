//! Checks a model: the protocol without a bug must keep every property, and every bug must break its properties.

use outlast_testkit::dead_end::{StateGraph, path_to_dead_end};
use stateright::{Checker, Expectation, HasDiscoveries, Model};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::Hash;

/// A liveness property: from every reachable state, an end state can be reached. It is checked on the whole graph, because the
/// checker's own `eventually` can miss a state that it reaches twice.
pub(super) const CAN_END: &str = "an end state can be reached";

/// A model with more states takes too long for every test run.
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
        if let Some(path) = path_to_dead_end(&Graph(&model), MOST_STATES) {
            panic!("{name} {nth} breaks '{CAN_END}': {path}");
        }
    }
    let (first, others) = never_happened.split_first().expect("a protocol has a model");
    let unseen = first.iter().copied().filter(|name| others.iter().all(|unseen| unseen.contains(name)));
    assert_eq!(unseen.collect::<Vec<_>>(), [""; 0], "the models show every situation");
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
        path_to_dead_end(&Graph(model), MOST_STATES)
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

/// The states of a model, for the search for dead ends.
struct Graph<'a, P>(&'a P);

impl<P: Protocol> StateGraph for Graph<'_, P> {
    type State = P::State;
    type Action = P::Action;

    fn first_states(&self) -> Vec<P::State> {
        self.0.init_states()
    }

    fn steps(&self, state: &P::State) -> Vec<(P::Action, P::State)> {
        self.0.next_steps(state)
    }

    fn is_over(&self, state: &P::State) -> bool {
        self.0.is_over(state)
    }

    fn helps(&self, action: &P::Action) -> bool {
        self.0.helps(action)
    }
}
