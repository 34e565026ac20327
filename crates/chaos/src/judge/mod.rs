//! What is left when everybody has stopped, against what must be left.

mod acks;
mod history;

use crate::evidence::{Ack, Record};
use crate::job::{Expected, Job};
use crate::ledger::{self, Ledger};
use crate::load::Book;
use crate::report::Report;
use crate::store::Store;
use outlast::providers::{InstanceQuery, ProviderAdmin, ProviderError};
use outlast::{Client, Event, OrchestrationStatus};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Everything that testifies.
pub(crate) struct Case<'a> {
    pub(crate) store: &'a Store,
    pub(crate) ledger: &'a Ledger,
    pub(crate) book: &'a Book,
    pub(crate) record: Record,
    pub(crate) seed: u64,
}

/// What was found, by what it says about the store.
#[derive(Default)]
struct Findings {
    lost: Vec<String>,
    stuck: Vec<String>,
    wrong: Vec<String>,
    strangers: Vec<String>,
    double: Vec<String>,
    troubles: Vec<String>,
    forgotten: Vec<String>,
    effects: Vec<String>,
    /// Turns whose worker was killed before the answer, and of them those that the store has.
    unanswered: u64,
    unanswered_and_stored: u64,
    instances: u64,
    events: u64,
}

/// Checks everything and reports it under a prefix.
pub(crate) async fn judge(case: Case<'_>, prefix: &str, report: &mut Report) -> Result<(), String> {
    let mut findings = Findings::default();
    case.endings(&mut findings).await?;
    case.stored(&mut findings).await.map_err(|error| format!("the store cannot be read: {error}"))?;
    case.deeds(&mut findings)?;
    let leftovers = case.store.leftovers().await?;
    let damage = case.store.damage().await?;

    if findings.unanswered > 0 {
        let (turns, stored) = (findings.unanswered, findings.unanswered_and_stored);
        println!(
            "  {turns:>5} turns had no answer when their worker was killed: {stored} were stored, the others not"
        );
    }
    report.check("0 lost: every acknowledged start is an instance", &findings.lost);
    report.check("0 stuck: every instance has ended", &findings.stuck);
    report.check("every instance ended as it must", &findings.wrong);
    report.check("every child is there, and nobody else", &findings.strangers);
    report.check("0 double completions: one end per execution, one outcome per decision", &findings.double);
    report.check("no storage trouble in a history, and no timer that fired early", &findings.troubles);
    report.check("what was acknowledged to a worker is stored, and to one worker only", &findings.forgotten);
    report.check("the ledger holds every effect once, and no other", &findings.effects);
    report.check("no message, activity, lease or dead letter is left", &leftovers);
    report.check("the stored bytes are sound", &damage);
    let mut figure = |name: &str, value: usize| report.figure(&format!("{prefix}{name}"), value);
    figure("lost", findings.lost.len());
    figure("stuck", findings.stuck.len());
    figure("wrong_endings", findings.wrong.len());
    figure("double_completions", findings.double.len());
    figure("acknowledged_and_missing_or_double", findings.forgotten.len());
    figure("effect_differences", findings.effects.len());
    figure("leftover_rows", leftovers.len());
    figure("acknowledged_commits_checked", case.record.acknowledged.len());
    report.figure(&format!("{prefix}turns_without_answer"), findings.unanswered);
    report.figure(&format!("{prefix}turns_without_answer_stored"), findings.unanswered_and_stored);
    report.figure(&format!("{prefix}instances_in_store"), findings.instances);
    report.figure(&format!("{prefix}events_in_store"), findings.events);
    report.histogram(&format!("{prefix}activities_by_runs"), &case.ledger.histogram()?);
    Ok(())
}

impl Case<'_> {
    /// How each job stands, what it must be, and what its client was told.
    async fn endings(&self, findings: &mut Findings) -> Result<(), String> {
        let client = Client::new(self.store.provider.clone());
        for (number, told) in &self.book.jobs {
            let job = Job::of(self.seed, *number);
            let id = job.instance();
            let stands =
                client.get_orchestration_status(&id).await.map_err(|error| format!("'{id}': {error}"))?;
            match &stands {
                OrchestrationStatus::NotFound => findings.lost.push(format!("'{id}'")),
                OrchestrationStatus::Running { .. } => {
                    let events = self.store.provider.read(&id).await.unwrap_or_default();
                    findings.stuck.push(format!("'{id}': {}", history::line(&events)));
                }
                _ => {
                    if let Err(problem) = Expected::of(&job).check(&stands) {
                        findings.wrong.push(format!("'{id}': {problem}"));
                    }
                    if told.as_ref().is_some_and(|told| *told != stands) {
                        findings
                            .wrong
                            .push(format!("'{id}': its client was told {told:?}, and it is {stands:?}"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Every stored history, next to what workers were told about it.
    async fn stored(&self, findings: &mut Findings) -> Result<(), ProviderError> {
        let Some(admin) = self.store.provider.as_management_capability() else {
            return Err(ProviderError::permanent("judge", "a store without management cannot be judged"));
        };
        let mut acks = by_instance(&self.record.acknowledged);
        let mut unanswered = by_instance(&self.record.unanswered);
        let mut families: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut query = InstanceQuery { limit: Some(1_000), ..InstanceQuery::default() };
        loop {
            let page = admin.query_instances(&query).await?;
            for info in page.instances {
                let id = info.instance_id;
                families.entry(Job::owner(&id).to_string()).or_default().insert(id.clone());
                let executions = read(admin, &id).await?;
                findings.instances += 1;
                findings.events += executions.values().map(|events| events.len() as u64).sum::<u64>();
                let about = |text: String| format!("'{id}': {text}");
                findings.double.extend(history::problems(&executions).into_iter().map(about));
                findings.troubles.extend(history::troubles(&executions).into_iter().map(about));
                if Job::owner(&id) != id && !history::has_ended(&executions) {
                    findings.stuck.push(format!("'{id}', which no client waits for"));
                }
                let turns = unanswered.remove(id.as_str()).unwrap_or_default();
                let turns = turns.into_iter().filter(|commit| matches!(commit, Ack::Turn { .. }));
                for turn in turns {
                    findings.unanswered += 1;
                    findings.unanswered_and_stored += u64::from(acks::is_stored(turn, &executions));
                }
                let told = acks.remove(id.as_str()).unwrap_or_default();
                findings.forgotten.extend(acks::problems(&told, &executions).into_iter().map(about));
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        findings
            .forgotten
            .extend(acks.keys().map(|id| format!("'{id}' had acknowledged commits and is gone")));
        self.relatives(families, findings);
        Ok(())
    }

    fn relatives(&self, mut families: BTreeMap<String, BTreeSet<String>>, findings: &mut Findings) {
        for number in self.book.jobs.keys() {
            let job = Job::of(self.seed, *number);
            let own = job.instance();
            let found = families.remove(&own).unwrap_or_default();
            let wanted = Expected::of(&job).family(&own);
            // One that is lost altogether is said once.
            if !found.is_empty() && found != wanted {
                findings.strangers.push(format!("'{own}': expected {wanted:?}, found {found:?}"));
            }
        }
        findings.strangers.extend(families.into_keys().map(|id| format!("'{id}' was never acknowledged")));
    }

    /// The ledger against what the jobs do.
    fn deeds(&self, findings: &mut Findings) -> Result<(), String> {
        let mut effects = self.ledger.effects()?;
        for number in self.book.jobs.keys() {
            let job = Job::of(self.seed, *number);
            let found = effects.remove(&job.instance()).unwrap_or_default();
            let problems = ledger::difference(&Expected::of(&job).effects, &found);
            findings.effects.extend(problems.into_iter().map(|text| format!("'{}': {text}", job.instance())));
        }
        findings.effects.extend(effects.into_keys().map(|job| format!("'{job}' was never acknowledged")));
        let made_up = self.ledger.without_attempt()?;
        if made_up > 0 {
            findings.effects.push(format!("{made_up} effects without a body that ran"));
        }
        Ok(())
    }
}

fn by_instance(commits: &[Ack]) -> HashMap<&str, Vec<&Ack>> {
    let mut sorted: HashMap<&str, Vec<&Ack>> = HashMap::new();
    for commit in commits {
        sorted.entry(commit.instance()).or_default().push(commit);
    }
    sorted
}

async fn read(admin: &dyn ProviderAdmin, id: &str) -> Result<BTreeMap<u64, Vec<Event>>, ProviderError> {
    let mut executions = BTreeMap::new();
    for execution in admin.list_executions(id).await? {
        executions.insert(execution, admin.read_history_with_execution_id(id, execution).await?);
    }
    Ok(executions)
}
