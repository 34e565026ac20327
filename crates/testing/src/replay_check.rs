//! Recorded histories against the present code.

use crate::cold::Build;
use crate::recorded::{self, Divergence, keys_after};
use crate::snapshot::in_package;
use outlast_model::Event;
use outlast_provider::{KvEntry, Provider, ProviderAdmin, ProviderError};
use outlast_runtime::check::Recorded;
use outlast_runtime::lens::counted;
use outlast_runtime::{Module, RuntimeOptions};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Replays recorded histories against the present code, and reports the instances that it would break.
///
/// A history is a JSON file that [`Run::export`](crate::Run::export) or `outlast instance history --output json --payloads` wrote.
/// The check proves the recorded past: it does not know how running instances go on.
///
/// ```no_run
/// # use outlast::prelude::*;
/// # #[outlast::orchestration]
/// # async fn fulfil(_ctx: OrchestrationContext, order: String) -> Result<String, String> { Ok(order) }
/// use outlast::testing::ReplayCheck;
///
/// ReplayCheck::new(outlast::module![fulfil]).files("tests/histories/*.json").run().safe();
/// ```
#[must_use = "nothing is replayed until `.run()`"]
pub struct ReplayCheck {
    module: Module,
    options: RuntimeOptions,
    paths: Vec<PathBuf>,
}

/// The result of a [`ReplayCheck`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "the result is not checked: call `.safe()`"]
pub struct ReplayReport {
    /// The number of executions that were replayed.
    pub checked: usize,
    /// The executions that the present code does not repeat.
    pub divergences: Vec<Divergence>,
    /// Files and instances that could not be read, one sentence each.
    pub unreadable: Vec<String>,
}

impl ReplayCheck {
    /// A check of the orchestrations of a module. Activities do not run.
    pub fn new(module: Module) -> Self {
        Self { module: module.without_activities(), options: RuntimeOptions::default(), paths: Vec::new() }
    }

    /// The options of the runtime that wrote the histories: replay depends on the codec and on the limits.
    pub fn options(mut self, options: RuntimeOptions) -> Self {
        self.options = options;
        self
    }

    /// Adds a file, a folder of `.json` files, or the files that match a name with one `*`. Relative paths are relative to the folder
    /// of the package's manifest.
    pub fn files(mut self, path: impl AsRef<Path>) -> Self {
        self.paths.push(in_package(path.as_ref()));
        self
    }

    /// Replays the histories of the files.
    pub fn run(self) -> ReplayReport {
        let mut report = ReplayReport::default();
        let Some(build) = self.build(&mut report) else { return report };
        for path in &self.paths {
            let files = match files_of(path) {
                Ok(files) if files.is_empty() => Err("no file has this name".to_string()),
                files => files,
            };
            match files {
                Ok(files) => files.iter().for_each(|file| report.check_file(&build, file)),
                Err(error) => report.unreadable.push(format!("{}: {error}", path.display())),
            }
        }
        report
    }

    /// Replays the histories of all instances of a store. It only reads.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn run_on(self, store: &dyn Provider) -> ReplayReport {
        let mut report = ReplayReport::default();
        let Some(build) = self.build(&mut report) else { return report };
        let Some(admin) = store.as_management_capability() else {
            report.unreadable.push(format!("the store '{}' does not list its instances", store.name()));
            return report;
        };
        let instances = match admin.list_instances().await {
            Ok(instances) => instances,
            Err(error) => {
                report.unreadable.push(format!("the instances cannot be listed: {error}"));
                return report;
            }
        };
        for instance in instances {
            match stored(store, admin, &instance).await {
                Ok((executions, kv)) => report.check_executions(&build, "store", &instance, &executions, kv),
                Err(error) => report.unreadable.push(format!("instance '{instance}': {error}")),
            }
        }
        report
    }

    fn build(&self, report: &mut ReplayReport) -> Option<Build> {
        match self.module.clone().build() {
            Ok((_, orchestrations)) => Some(Build::new(orchestrations, &self.options)),
            Err(error) => {
                report.unreadable.extend(error.problems);
                None
            }
        }
    }
}

impl ReplayReport {
    /// Whether every history was read and repeated, and there was at least one.
    pub fn is_safe(&self) -> bool {
        self.checked > 0 && self.divergences.is_empty() && self.unreadable.is_empty()
    }

    /// # Panics
    ///
    /// Unless [`ReplayReport::is_safe`], with all differences.
    #[track_caller]
    pub fn safe(&self) {
        assert!(self.is_safe(), "{self}");
    }

    fn check_file(&mut self, build: &Build, path: &Path) {
        let source = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let events =
            fs::read_to_string(path).map_err(|error| error.to_string()).and_then(|text| events_of(&text));
        let events = match events {
            Ok(events) => events,
            Err(error) => return self.unreadable.push(format!("{}: {error}", path.display())),
        };
        let mut instances: BTreeMap<String, BTreeMap<u64, Vec<Event>>> = BTreeMap::new();
        for event in events {
            let executions = instances.entry(event.instance_id.clone()).or_default();
            executions.entry(event.execution_id).or_default().push(event);
        }
        for (instance, executions) in &instances {
            self.check_executions(build, &source, instance, executions, HashMap::new());
        }
    }

    fn check_executions(
        &mut self,
        build: &Build,
        source: &str,
        instance: &str,
        executions: &BTreeMap<u64, Vec<Event>>,
        mut kv: HashMap<String, KvEntry>,
    ) {
        for (execution_id, history) in executions {
            let execution = Recorded { instance, execution_id: *execution_id, history, kv: kv.clone() };
            self.checked += 1;
            self.divergences.extend(recorded::check(build, source, execution).err());
            kv = keys_after(kv, history);
        }
    }

    /// Replays the histories of one run.
    pub(crate) fn of_run(build: &Build, histories: &BTreeMap<String, Vec<Vec<Event>>>) -> Self {
        let mut report = Self::default();
        for (instance, executions) in histories {
            let executions = executions
                .iter()
                .map(|history| (history.first().map_or(0, |event| event.execution_id), history.clone()));
            report.check_executions(build, "run", instance, &executions.collect(), HashMap::new());
        }
        report
    }
}

impl fmt::Display for ReplayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (checked, differ) = (self.checked, self.divergences.len());
        let replayed = counted(checked, "execution");
        writeln!(f, "{replayed} replayed, {differ} not repeated by the present code")?;
        self.divergences.iter().try_for_each(|divergence| writeln!(f, "  {divergence}"))?;
        self.unreadable.iter().try_for_each(|problem| writeln!(f, "  {problem}"))?;
        match checked {
            0 => f.write_str("  no history was replayed: is the path right?"),
            _ => Ok(()),
        }
    }
}

/// The executions of an instance of a store, and the keys at the start of the first of them. If the first executions were deleted,
/// only the last execution is returned, because the store has the keys of no other one.
async fn stored(
    store: &dyn Provider,
    admin: &dyn ProviderAdmin,
    instance: &str,
) -> Result<(BTreeMap<u64, Vec<Event>>, HashMap<String, KvEntry>), ProviderError> {
    let ids = admin.list_executions(instance).await?;
    let mut executions = BTreeMap::new();
    for id in &ids {
        executions.insert(*id, store.read_with_execution(instance, *id).await?);
    }
    let mut kv = HashMap::new();
    if let (Some(2..), Some(last)) = (ids.first(), ids.last()) {
        executions = executions.split_off(last);
        let loaded = store.load_turn(instance, *last).await?;
        if let Some(error) = loaded.history_error {
            return Err(ProviderError::permanent("load_turn", error));
        }
        kv = loaded.kv_snapshot;
    }
    Ok((executions, kv))
}

/// The events of a file: an array of events, or an object with the field `events`.
fn events_of(text: &str) -> Result<Vec<Event>, String> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let events = match value {
        serde_json::Value::Object(mut fields) => fields.remove("events").unwrap_or_default(),
        other => other,
    };
    serde_json::from_value(events).map_err(|error| {
        format!("it is no list of events with payloads ({error}): export it with `outlast instance history --output json --payloads`")
    })
}

fn files_of(path: &Path) -> Result<Vec<PathBuf>, String> {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let (folder, before, after) = match name.split_once('*') {
        Some((before, after)) => (path.parent().unwrap_or(path), before.to_string(), after.to_string()),
        None if path.is_dir() => (path, String::new(), ".json".to_string()),
        None => return Ok(vec![path.to_path_buf()]),
    };
    let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| error.to_string())?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.len() >= before.len() + after.len() && name.starts_with(&before) && name.ends_with(&after) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}
