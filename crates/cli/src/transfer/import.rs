//! `outlast instance import`, and the import of `outlast migrate-from`.

use super::file::Reader;
use super::{Counts, admin, shown};
use crate::failure::Failure;
use crate::instance::args::ImportArgs;
use crate::output::print;
use crate::store::{self, Intent, Kind, Place, sqlite};
use outlast::providers::memory::MemoryProvider;
use outlast::providers::snapshot::{ImportOutcome, InstanceSnapshot, SnapshotHold};
use outlast::providers::{AuditEntry, Clock, HoldKind, Provider, SystemClock, WorkItem};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

pub(crate) async fn run(args: ImportArgs) -> Result<(), Failure> {
    let source = format!("the file '{}'", args.file.display());
    let mut found = Found::of(&source);
    let mut reader = Reader::open(&args.file)?;
    while let Some(snapshot) = reader.next_instance()? {
        found.add(&snapshot)?;
    }
    let place = args.common.store.clone().place()?;
    let provider = target(&place, args.dry_run, args.create).await?;
    let options = Options {
        dry_run: args.dry_run,
        skip_existing: args.skip_existing,
        paused: args.paused,
        by: args.by,
        reason: args.reason,
        source,
    };
    let mut import = Import::begin(&*provider, options, &found).await?;
    // The file may be larger than memory, so it is read again.
    let mut reader = Reader::open(&args.file)?;
    while let Some(snapshot) = reader.next_instance()? {
        if !found.has(&snapshot.instance_id) {
            return Err(import.stopped(&snapshot.instance_id, "the file was changed while it was imported"));
        }
        import.one(snapshot).await?;
    }
    let report = import.report;
    print(args.common.output, &report, Report::text)
}

/// The store to import to. A dry run creates no store: a file that would be created counts as an empty store.
pub(crate) async fn target(place: &Place, dry_run: bool, create: bool) -> Result<Arc<dyn Provider>, Failure> {
    let intent = match (dry_run, create) {
        (true, _) => Intent::Read,
        (false, true) => Intent::Create,
        (false, false) => Intent::Write,
    };
    let would_create =
        dry_run && create && Kind::of(&place.url)? == Kind::Sqlite && !sqlite::path(&place.url)?.exists();
    match would_create {
        true => Ok(Arc::new(MemoryProvider::new())),
        false => store::open_provider(place, intent).await,
    }
}

/// The instances of the source.
pub(crate) struct Found {
    source: String,
    ids: BTreeSet<String>,
    parents: BTreeSet<String>,
}

impl Found {
    pub(crate) fn of(source: &str) -> Self {
        Self { source: source.to_string(), ids: BTreeSet::new(), parents: BTreeSet::new() }
    }

    fn has(&self, instance: &str) -> bool {
        self.ids.contains(instance)
    }

    /// Notes an instance. An id may occur once.
    pub(crate) fn add(&mut self, snapshot: &InstanceSnapshot) -> Result<(), Failure> {
        let parent = snapshot.row.as_ref().and_then(|row| row.parent_instance_id.clone());
        self.parents.extend(parent);
        match self.ids.insert(snapshot.instance_id.clone()) {
            true => Ok(()),
            false => Err(Failure::new(format!(
                "instance '{}' occurs twice in {}. Nothing was imported",
                crate::output::plain(&snapshot.instance_id),
                self.source
            ))),
        }
    }
}

/// How instances are imported.
pub(crate) struct Options {
    pub(crate) dry_run: bool,
    pub(crate) skip_existing: bool,
    pub(crate) paused: bool,
    pub(crate) by: String,
    pub(crate) reason: String,
    /// The source, for the audit and for holds.
    pub(crate) source: String,
}

/// An import into a store.
pub(crate) struct Import<'a> {
    provider: &'a dyn Provider,
    options: Options,
    existing: BTreeSet<String>,
    pub(crate) report: Report,
}

impl<'a> Import<'a> {
    /// Looks which ids exist, and refuses them unless they are skipped.
    pub(crate) async fn begin(
        provider: &'a dyn Provider,
        options: Options,
        found: &Found,
    ) -> Result<Self, Failure> {
        let mut existing = Vec::new();
        for id in &found.ids {
            if provider.read_outcome(id).await?.is_some() {
                existing.push(id.clone());
            }
        }
        if !existing.is_empty() && !options.skip_existing {
            return Err(Failure::refused(format!(
                "{} instances of {} exist in the store: {}. Nothing was imported; --skip-existing leaves them as they are",
                existing.len(),
                options.source,
                shown(&existing)
            )));
        }
        let mut missing_parents = Vec::new();
        for parent in found.parents.difference(&found.ids) {
            if provider.read_outcome(parent).await?.is_none() {
                missing_parents.push(parent.clone());
            }
        }
        let report = Report {
            dry_run: options.dry_run,
            imported: Counts::default(),
            skipped: Vec::new(),
            missing_parents,
        };
        Ok(Self { provider, options, existing: existing.into_iter().collect(), report })
    }

    /// Imports an instance, or only counts it in a dry run.
    pub(crate) async fn one(&mut self, mut snapshot: InstanceSnapshot) -> Result<(), Failure> {
        if self.existing.contains(&snapshot.instance_id) {
            self.report.skipped.push(snapshot.instance_id);
            return Ok(());
        }
        if self.options.paused {
            self.pause(&mut snapshot);
        }
        if !self.options.dry_run {
            let audit = self.audit(&snapshot.instance_id);
            let outcome = admin(self.provider)?.import_instance(&snapshot, &audit).await;
            match outcome.map_err(|error| self.stopped(&snapshot.instance_id, &error.to_string()))? {
                ImportOutcome::Imported => {}
                ImportOutcome::Taken if self.options.skip_existing => {
                    self.report.skipped.push(snapshot.instance_id);
                    return Ok(());
                }
                ImportOutcome::Taken => {
                    let reason =
                        "its id is taken: a start of it waits, or it was created since the command began";
                    return Err(self.stopped(&snapshot.instance_id, reason));
                }
                _ => return Err(Failure::new("this kind of store cannot import instances")),
            }
        }
        self.report.imported.add(&snapshot);
        Ok(())
    }

    fn stopped(&self, instance: &str, reason: &str) -> Failure {
        Failure::new(format!(
            "instance '{}' was not imported: {reason}. {} instances before it were imported; --skip-existing continues after them",
            crate::output::plain(instance),
            self.report.imported.instances
        ))
    }

    /// Holds an unfinished instance. A cancellation must be able to end it.
    fn pause(&self, snapshot: &mut InstanceSnapshot) {
        let is_cancelled =
            snapshot.messages.iter().any(|message| matches!(message.item, WorkItem::CancelInstance { .. }));
        if snapshot.hold.is_some() || snapshot.has_ended() || is_cancelled {
            return;
        }
        snapshot.hold = Some(SnapshotHold {
            kind: HoldKind::Paused.to_string(),
            actor: self.options.by.clone(),
            reason: format!("imported from {}", self.options.source),
            held_at_ms: SystemClock.now_ms(),
        });
    }

    fn audit(&self, instance: &str) -> AuditEntry {
        let reason = match self.options.reason.is_empty() {
            true => format!("from {}", self.options.source),
            false => self.options.reason.clone(),
        };
        AuditEntry {
            actor: self.options.by.clone(),
            action: "instance.import".to_string(),
            target: instance.to_string(),
            reason,
            request: None,
            result: "done".to_string(),
        }
    }
}

/// The imported instances.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) dry_run: bool,
    pub(crate) imported: Counts,
    /// Instances that exist in the store.
    pub(crate) skipped: Vec<String>,
    /// Parents of imported instances that neither the source nor the store has: the outcomes of their children become dead letters.
    pub(crate) missing_parents: Vec<String>,
}

impl Report {
    pub(crate) fn text(&self) -> String {
        let head = match self.dry_run {
            true => "Nothing was changed. An import would bring",
            false => "Imported",
        };
        let mut text = format!("{head} {}.\n", self.imported.text());
        if !self.skipped.is_empty() {
            text += &format!(
                "  Skipped {} instances that exist: {}.\n",
                self.skipped.len(),
                shown(&self.skipped)
            );
        }
        if !self.missing_parents.is_empty() {
            text += &format!("  The parents {} are missing.\n", shown(&self.missing_parents));
        }
        text
    }
}
