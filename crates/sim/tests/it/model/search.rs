//! Checks a model: the protocol without a bug must keep every property, and every bug must break its properties.

use outlast_testkit::dead_end::{StateGraph, path_to_dead_end};
use stateright::{Checker, Expectation, HasDiscoveries, Model};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::Hash;

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
    if let Some(path) = path_to_dead_end(&Graph(&P::sound(depth)), usize::MAX) {
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
        path_to_dead_end(&Graph(model), usize::MAX)
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
