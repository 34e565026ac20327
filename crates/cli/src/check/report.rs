//! The report of a check.

use super::questions::Target;
use crate::output::plain;
use outlast::lens::counted;
use outlast::runtime::check::{Finding, Verdict};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};

/// The number of instances that the table names for each difference.
const NAMED: usize = 5;

/// The report of a check. Its instances are those that are not safe.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    store: String,
    program: String,
    /// Whether the program repeats every history.
    is_safe: bool,
    checked: usize,
    safe: usize,
    diverging: usize,
    unregistered: usize,
    undecodable: usize,
    instances: Vec<Broken>,
    patches: BTreeMap<String, Answers>,
    #[serde(skip)]
    progress: Progress,
    /// Whether the store has no instance at all.
    #[serde(skip)]
    is_store_empty: bool,
    /// Whether the places of recorded decisions are missing because the old program was not given.
    #[serde(skip)]
    is_old_program_missing: bool,
}

/// An instance that the program breaks.
#[derive(Debug, Serialize)]
struct Broken {
    #[serde(flatten)]
    verdict: Verdict,
    /// The place of the recorded decision in the source of the old program, if that program was given.
    recorded_site: Option<String>,
}

/// The instances that ask for a patch.
#[derive(Debug, Default, Serialize)]
struct Answers {
    /// Running instances that take it.
    taken: usize,
    /// Running instances that are older than it, and need its old code: the program repeats them.
    older: usize,
    /// Running instances that do not take it and that the program does not repeat. Another cause than their age is possible: a build
    /// without the patch may have begun them.
    diverging: usize,
}

/// The progress of a check, as lines on standard error.
#[derive(Debug)]
pub(super) struct Progress {
    /// The number of instances between two lines.
    pub(super) step: usize,
    /// The number of running instances when the check began, if it is known and all of them are checked.
    pub(super) total: Option<u64>,
}

impl Progress {
    /// The line after this number of instances, if one is due.
    fn line(&self, checked: usize, broken: usize) -> Option<String> {
        if !checked.is_multiple_of(self.step) {
            return None;
        }
        let checked_of = match self.total {
            // Instances that start while the check runs are not in the total.
            Some(total) if total >= checked as u64 => {
                let percent = checked as u64 * 100 / total;
                format!("{checked} of {} ({percent} %)", counted(total, "running instance"))
            }
            _ => counted(checked, "running instance"),
        };
        Some(format!("checked {checked_of}, not safe: {broken}"))
    }
}

impl Report {
    pub(super) fn new(store: String, program: String, progress: Progress) -> Self {
        Self {
            store,
            program,
            is_safe: true,
            checked: 0,
            safe: 0,
            diverging: 0,
            unregistered: 0,
            undecodable: 0,
            instances: Vec::new(),
            patches: BTreeMap::new(),
            progress,
            is_store_empty: false,
            is_old_program_missing: false,
        }
    }

    pub(super) fn is_safe(&self) -> bool {
        self.is_safe
    }

    pub(super) fn add(&mut self, mut verdict: Verdict) {
        self.checked += 1;
        for (patch, is_taken) in std::mem::take(&mut verdict.patches) {
            let answers = self.patches.entry(patch).or_default();
            *match (is_taken, verdict.finding) {
                (true, _) => &mut answers.taken,
                (false, Finding::Safe) => &mut answers.older,
                (false, _) => &mut answers.diverging,
            } += 1;
        }
        match verdict.finding {
            Finding::Safe => self.safe += 1,
            Finding::Diverges => self.diverging += 1,
            Finding::Unregistered => self.unregistered += 1,
            Finding::Undecodable => self.undecodable += 1,
        }
        if verdict.finding != Finding::Safe {
            self.is_safe = false;
            self.instances.push(Broken { verdict, recorded_site: None });
        }
        if let Some(line) = self.progress.line(self.checked, self.instances.len()) {
            // Without a reader of the progress the check goes on.
            let _ = writeln!(io::stderr(), "{line}");
        }
    }

    /// The instances whose recorded decision has a place in the old source.
    pub(super) fn unexplained(&self) -> Vec<Target> {
        let diverging = self.instances.iter().map(|broken| &broken.verdict);
        let diverging = diverging.filter(|verdict| verdict.event_id.is_some());
        let target = |verdict: &Verdict| Target {
            instance: verdict.instance.clone(),
            execution_id: verdict.execution_id,
            orchestration: verdict.orchestration.clone(),
            version: verdict.version.clone(),
            locate: verdict.event_id,
        };
        diverging.map(target).collect()
    }

    /// Enters the answer of the old program.
    pub(super) fn locate(&mut self, verdict: Verdict) {
        let found = self.instances.iter_mut().find(|broken| broken.verdict.instance == verdict.instance);
        if let Some(broken) = found {
            broken.recorded_site = verdict.located;
        }
    }

    pub(super) fn finished(mut self) -> Self {
        self.instances.sort_by(|a, b| a.verdict.instance.cmp(&b.verdict.instance));
        self
    }

    pub(super) fn has_checked_nothing(&self) -> bool {
        self.checked == 0
    }

    pub(super) fn note_empty_store(&mut self) {
        self.is_store_empty = true;
    }

    pub(super) fn note_missing_old_program(&mut self) {
        self.is_old_program_missing = true;
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "Checked {} of {} with {}: {} safe, {} diverge, {} unregistered, {} undecodable.\n",
            counted(self.checked, "running instance"),
            self.store,
            self.program,
            self.safe,
            self.diverging,
            self.unregistered,
            self.undecodable
        );
        for (_, group) in self.groups() {
            // Writing to a string does not fail.
            let _ = write_group(&mut text, &group);
        }
        for (patch, Answers { older, diverging, .. }) in &self.patches {
            let state = match older {
                0 if *diverging > 0 => "no safe instance is older than it".to_string(),
                0 => "no running instance is older than it: its old code can be removed".to_string(),
                1 => "1 running instance is older than it, and needs its old code".to_string(),
                older => format!("{older} running instances are older than it, and need its old code"),
            };
            let unclear = match diverging {
                0 => String::new(),
                1 => "; 1 instance that is not safe has no record of it".to_string(),
                count => format!("; {count} instances that are not safe have no record of it"),
            };
            let _ = writeln!(text, "\npatch '{}': {state}{unclear}", plain(patch));
        }
        if self.is_store_empty {
            text.push_str(
                "\nThe store has no instance: is it the right store? A copy of a SQLite store in use needs its file '-wal' too.\n",
            );
        }
        if self.is_old_program_missing {
            text.push_str(
                "\nHistories hold no places in the code: give `--old PATH` with the build that wrote them, and the report has the \
                 place of each recorded decision.\n",
            );
        }
        text.push_str("\nThe check replays the recorded past. It does not know how the instances go on.\n");
        text
    }

    /// The instances that differ in the same way.
    fn groups(&self) -> BTreeMap<Way<'_>, Vec<&Broken>> {
        let mut groups: BTreeMap<Way<'_>, Vec<&Broken>> = BTreeMap::new();
        for broken in &self.instances {
            let Verdict { finding, orchestration, version, recorded, site, .. } = &broken.verdict;
            let way =
                (*finding, orchestration.as_str(), version.as_str(), recorded.as_deref(), site.as_deref());
            groups.entry(way).or_default().push(broken);
        }
        groups
    }
}

type Way<'a> = (Finding, &'a str, &'a str, Option<&'a str>, Option<&'a str>);

fn write_group(text: &mut String, group: &[&Broken]) -> std::fmt::Result {
    let Some(Broken { verdict, recorded_site }) = group.first() else { return Ok(()) };
    let finding = match verdict.finding {
        Finding::Safe => "safe",
        Finding::Diverges => "diverges",
        Finding::Unregistered => "unregistered",
        Finding::Undecodable => "undecodable",
    };
    let count = counted(group.len(), "instance");
    writeln!(text, "\n{finding}: {count} of {} {}", plain(&verdict.orchestration), plain(&verdict.version))?;
    if let (Some(event_id), Some(recorded)) = (verdict.event_id, &verdict.recorded) {
        let site = recorded_site.as_ref().map_or(String::new(), |site| format!(" at {}", plain(site)));
        writeln!(text, "  recorded: event {event_id} is {}{site}", plain(recorded))?;
    }
    if let Some(now) = &verdict.now {
        writeln!(text, "  now: {}", plain(now))?;
    }
    if let Some(site) = &verdict.site {
        writeln!(text, "  at: {}", plain(site))?;
    }
    let named: Vec<String> = group.iter().take(NAMED).map(|broken| plain(&broken.verdict.instance)).collect();
    let more = if group.len() > NAMED { ", .." } else { "" };
    writeln!(text, "  instances: {}{more}", named.join(", "))
}
