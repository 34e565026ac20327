//! Modules: activities and orchestrations that are registered together, and the state that activities get from their runtime.

use crate::builder::StartError;
use crate::handler::{ActivityHandler, OrchestrationHandler};
use crate::registry::{ActivityRegistry, OrchestrationRegistry};
use std::any::{Any, TypeId, type_name};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Activities and orchestrations to register with [`RuntimeBuilder::register`](crate::RuntimeBuilder::register). The macro
/// `outlast::module!` makes one from typed functions. Clones share the values of [`Module::state`].
#[derive(Clone, Default)]
pub struct Module {
    activities: Vec<ActivityEntry>,
    orchestrations: Vec<OrchestrationEntry>,
    states: BTreeMap<TypeId, StateEntry>,
    problems: Vec<String>,
}

type Build = Arc<dyn Fn(&States) -> Arc<dyn ActivityHandler> + Send + Sync>;

#[derive(Clone)]
struct ActivityEntry {
    name: String,
    needs: Vec<Need>,
    build: Build,
}

#[derive(Clone)]
struct OrchestrationEntry {
    name: String,
    version: Option<String>,
    handler: Arc<dyn OrchestrationHandler>,
}

#[derive(Clone)]
struct StateEntry {
    value: Arc<dyn Any + Send + Sync>,
}

/// A value that an activity gets from the runtime that runs it: a pool of connections, a client of a service. The runtime has one
/// value of each type, see [`RuntimeBuilder::state`](crate::RuntimeBuilder::state).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct State<T>(pub T);

/// The values of a runtime for [`State`], by type.
#[derive(Clone, Default)]
pub struct States(Arc<BTreeMap<TypeId, StateEntry>>);

/// The type of a state that an activity needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    id: TypeId,
    name: &'static str,
}

impl Need {
    /// The need for `State<T>`.
    pub fn of<T: 'static>() -> Self {
        Self { id: TypeId::of::<T>(), name: type_name::<T>() }
    }
}

impl States {
    /// The value of a type.
    pub fn get<T: Clone + 'static>(&self) -> Option<T> {
        self.0.get(&TypeId::of::<T>())?.value.downcast_ref::<T>().cloned()
    }
}

impl Module {
    /// A module without contents.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an activity. `build` receives the states of the runtime; the start of the runtime fails if a needed state is missing.
    #[must_use]
    pub fn activity(
        mut self,
        name: impl Into<String>,
        needs: Vec<Need>,
        build: impl Fn(&States) -> Arc<dyn ActivityHandler> + Send + Sync + 'static,
    ) -> Self {
        self.activities.push(ActivityEntry { name: name.into(), needs, build: Arc::new(build) });
        self
    }

    /// Removes an activity, so that a test can register another one under its name. The states that the activity needs are no longer
    /// required.
    #[must_use]
    pub fn without_activity(mut self, name: &str) -> Self {
        self.activities.retain(|entry| entry.name != name);
        self
    }

    /// Removes all activities and states, for a replay, which runs orchestrations only.
    #[must_use]
    pub fn without_activities(mut self) -> Self {
        self.activities.clear();
        self.states.clear();
        self
    }

    /// Removes all versions of an orchestration, so that a test can register another one under its name.
    #[must_use]
    pub fn without_orchestration(mut self, name: &str) -> Self {
        self.orchestrations.retain(|entry| entry.name != name);
        self
    }

    /// Adds one version of an orchestration; without a version it is 1.0.0.
    #[must_use]
    pub fn orchestration(
        mut self,
        name: impl Into<String>,
        version: Option<&str>,
        handler: Arc<dyn OrchestrationHandler>,
    ) -> Self {
        let version = version.map(str::to_string);
        self.orchestrations.push(OrchestrationEntry { name: name.into(), version, handler });
        self
    }

    /// Adds a value for [`State`]. A second value of the same type is an error of the start.
    #[must_use]
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        let entry = StateEntry { value: Arc::new(value) };
        if self.states.insert(TypeId::of::<T>(), entry).is_some() {
            self.problems.push(format!(
                "State<{name}> has two values: call .state(..) once per type",
                name = type_name::<T>()
            ));
        }
        self
    }

    /// Adds the contents of another module.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.activities.extend(other.activities);
        self.orchestrations.extend(other.orchestrations);
        self.problems.extend(other.problems);
        for (id, entry) in other.states {
            if self.states.insert(id, entry).is_some() {
                self.problems
                    .push("two modules have a State of the same type: call .state(..) once per type".into());
            }
        }
        self
    }

    /// The registries with the contents of this module, for a runtime that is started without a builder.
    ///
    /// # Errors
    ///
    /// All problems of the registration.
    pub fn build(self) -> Result<(ActivityRegistry, OrchestrationRegistry), StartError> {
        let none = (ActivityRegistry::default(), OrchestrationRegistry::default());
        let (activities, orchestrations, problems) = self.register(&none.0, &none.1);
        match problems.is_empty() {
            true => Ok((activities, orchestrations)),
            false => Err(StartError { problems }),
        }
    }

    /// Adds the contents to registries. Returns the registries and all problems, one sentence each.
    pub(crate) fn register(
        self,
        activities: &ActivityRegistry,
        orchestrations: &OrchestrationRegistry,
    ) -> (ActivityRegistry, OrchestrationRegistry, Vec<String>) {
        let mut problems = self.problems;
        let states = States(Arc::new(self.states));
        let mut activity_builder = ActivityRegistry::builder_from(activities);
        problems.extend(missing_states(&self.activities, &states));
        for entry in self.activities {
            activity_builder = activity_builder.register_handler(entry.name, (entry.build)(&states));
        }
        let mut orchestration_builder = OrchestrationRegistry::builder_from(orchestrations);
        for OrchestrationEntry { name, version, handler } in self.orchestrations {
            orchestration_builder = orchestration_builder.register_handler(name, version.as_deref(), handler);
        }
        let mut found = |problem: String| problems.push(problem);
        let activities = activity_builder.build_result().unwrap_or_else(|problem| {
            found(problem);
            ActivityRegistry::default()
        });
        let orchestrations = orchestration_builder.build_result().unwrap_or_else(|problem| {
            found(problem);
            OrchestrationRegistry::default()
        });
        (activities, orchestrations, problems)
    }

    fn names(&self) -> (Vec<&str>, Vec<&str>) {
        let activities = self.activities.iter().map(|entry| entry.name.as_str()).collect();
        (activities, self.orchestrations.iter().map(|entry| entry.name.as_str()).collect())
    }
}

/// One sentence for each missing state, with all activities that need it.
fn missing_states(activities: &[ActivityEntry], states: &States) -> Vec<String> {
    let mut missing: Vec<(&Need, Vec<String>)> = Vec::new();
    for entry in activities {
        for need in entry.needs.iter().filter(|need| !states.0.contains_key(&need.id)) {
            let name = format!("'{}'", entry.name);
            match missing.iter_mut().find(|(found, _)| found.id == need.id) {
                Some((_, names)) if names.contains(&name) => {}
                Some((_, names)) => names.push(name),
                None => missing.push((need, vec![name])),
            }
        }
    }
    let sentence = |(need, names): (&Need, Vec<String>)| {
        let activities = match &names[..] {
            [first @ .., last] if !first.is_empty() => {
                format!("activities {} and {last} need", first.join(", "))
            }
            names => format!("activity {} needs", names.concat()),
        };
        format!("{activities} State<{}>: call .state(..) with a value", need.name)
    };
    missing.into_iter().map(sentence).collect()
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (activities, orchestrations) = self.names();
        f.debug_struct("Module")
            .field("activities", &activities)
            .field("orchestrations", &orchestrations)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "States({})", self.0.len())
    }
}
