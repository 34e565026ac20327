//! Verifies the store after all workers have stopped.
//!
//! | check of the report | file, function |
//! |---|---|
//! | lost, stuck, wrong result | `verify/mod.rs` `check_statuses` |
//! | unexpected or missing children | `verify/mod.rs` `check_children` |
//! | double completions, ids with gaps | `verify/history.rs` `problems` |
//! | storage errors, poison, early timers | `verify/history.rs` `errors` |
//! | commits that two workers own, or that are not stored | `verify/commits.rs` `problems` |
//! | effects that are missing, unexpected or doubled | `effect_ledger.rs` `difference` |

mod commits;
mod history;

use crate::commit_log::{Commit, CommitRecord};
use crate::effect_ledger::{self, EffectLedger};
use crate::job::{Expected, Job};
use crate::load::ClientRecord;
use crate::report::Report;
use crate::store::Store;
use outlast::providers::{InstanceQuery, ProviderAdmin, ProviderError};
use outlast::{Client, Event, OrchestrationStatus};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The store and the records that it is compared with.
pub(crate) struct VerifyInput<'a> {
    pub(crate) store: &'a Store,
    pub(crate) ledger: &'a EffectLedger,
    pub(crate) client_record: &'a ClientRecord,
    pub(crate) record: CommitRecord,
    pub(crate) seed: u64,
}

/// The findings, one list for each check.
#[derive(Default)]
struct Findings {
    lost: Vec<String>,
    stuck: Vec<String>,
    wrong: Vec<String>,
    unexpected: Vec<String>,
    double: Vec<String>,
    history_errors: Vec<String>,
    commit_problems: Vec<String>,
    effects: Vec<String>,
    /// Turns whose worker was killed before the answer, and how many of them the store has.
    unanswered: u64,
    unanswered_stored: u64,
    instances: u64,
    events: u64,
}

/// Runs all checks; figures get the prefix.
pub(crate) async fn verify(input: VerifyInput<'_>, prefix: &str, report: &mut Report) -> Result<(), String> {
    let mut findings = Findings::default();
    input.check_statuses(&mut findings).await?;
    input
        .check_histories(&mut findings)
        .await
        .map_err(|error| format!("the store cannot be read: {error}"))?;
    input.check_effects(&mut findings)?;
    let leftovers = input.store.leftovers().await?;
    let damage = input.store.damage().await?;

    if findings.unanswered > 0 {
        let (turns, check_histories) = (findings.unanswered, findings.unanswered_stored);
        println!(
            "  {turns:>5} turns had no answer when their worker was killed: {check_histories} were stored, the others not"
        );
    }
    report.check("0 lost: every acknowledged start is an instance", &findings.lost);
    report.check("0 stuck: every instance has ended", &findings.stuck);
    report.check("every instance has its expected result", &findings.wrong);
    report.check("every child is stored, and no other instance", &findings.unexpected);
    report.check("0 double completions: one end per execution, one outcome per decision", &findings.double);
    report.check("no history contains a storage error or an early timer", &findings.history_errors);
    report.check(
        "every commit that was acknowledged to a worker is stored, and was acknowledged to one worker only",
        &findings.commit_problems,
    );
    report.check("the effect ledger holds every effect once, and no other", &findings.effects);
    report.check("the store holds no message, activity, lease or dead letter", &leftovers);
    report.check("the stored bytes are intact", &damage);
    let mut figure = |name: &str, value: usize| report.figure(&format!("{prefix}{name}"), value);
    figure("lost", findings.lost.len());
    figure("stuck", findings.stuck.len());
    figure("wrong_endings", findings.wrong.len());
    figure("double_completions", findings.double.len());
    figure("acknowledged_and_missing_or_double", findings.commit_problems.len());
    figure("effect_differences", findings.effects.len());
    figure("leftover_rows", leftovers.len());
    figure("acknowledged_commits_checked", input.record.acknowledged.len());
    report.figure(&format!("{prefix}turns_without_answer"), findings.unanswered);
    report.figure(&format!("{prefix}turns_without_answer_stored"), findings.unanswered_stored);
    report.figure(&format!("{prefix}instances_in_store"), findings.instances);
    report.figure(&format!("{prefix}events_in_store"), findings.events);
    report.histogram(&format!("{prefix}activities_by_runs"), &input.ledger.histogram()?);
    Ok(())
}

impl Findings {
    /// Checks the histories of one instance, and compares them with the commits of the workers.
    fn check_instance(
        &mut self,
        id: &str,
        executions: &BTreeMap<u64, Vec<Event>>,
        acknowledged: &[&Commit],
        unanswered: &[&Commit],
    ) {
        self.instances += 1;
        self.events += executions.values().map(|events| events.len() as u64).sum::<u64>();
        let with_id = |text: String| format!("'{id}': {text}");
        self.double.extend(history::problems(executions).into_iter().map(with_id));
        self.history_errors.extend(history::errors(executions).into_iter().map(with_id));
        if Job::owner(id) != id && !history::has_ended(executions) {
            self.stuck.push(format!("'{id}', which no client waits for"));
        }
        for turn in unanswered.iter().filter(|commit| matches!(commit, Commit::Turn { .. })) {
            self.unanswered += 1;
            self.unanswered_stored += u64::from(commits::is_stored(turn, executions));
        }
        self.commit_problems.extend(commits::problems(acknowledged, executions).into_iter().map(with_id));
    }
}

impl VerifyInput<'_> {
    /// Checks the status of each job against the expected result and against the answer that its client received.
    async fn check_statuses(&self, findings: &mut Findings) -> Result<(), String> {
        let client = Client::new(self.store.provider.clone());
        for (number, answered) in &self.client_record.jobs {
            let job = Job::of(self.seed, *number);
            let id = job.instance();
            let status =
                client.get_orchestration_status(&id).await.map_err(|error| format!("'{id}': {error}"))?;
            match &status {
                OrchestrationStatus::NotFound => findings.lost.push(format!("'{id}'")),
                OrchestrationStatus::Running { .. } => {
                    let events = self.store.provider.read(&id).await.unwrap_or_default();
                    findings.stuck.push(format!("'{id}': {}", history::one_line(&events)));
                }
                _ => {
                    if let Err(problem) = Expected::of(&job).check(&status) {
                        findings.wrong.push(format!("'{id}': {problem}"));
                    }
                    if answered.as_ref().is_some_and(|answered| *answered != status) {
                        findings.wrong.push(format!(
                            "'{id}': its client received {answered:?}, and the store has {status:?}"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks every stored history, and compares it with the commits of the workers.
    async fn check_histories(&self, findings: &mut Findings) -> Result<(), ProviderError> {
        let Some(admin) = self.store.provider.as_management_capability() else {
            return Err(ProviderError::permanent("verify", "a store without management cannot be verified"));
        };
        let mut acknowledged = by_instance(&self.record.acknowledged);
        let mut unanswered = by_instance(&self.record.unanswered);
        let mut ids_by_job: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut query = InstanceQuery { limit: Some(1_000), ..InstanceQuery::default() };
        loop {
            let page = admin.query_instances(&query).await?;
            for info in page.instances {
                let id = info.instance_id;
                ids_by_job.entry(Job::owner(&id).to_string()).or_default().insert(id.clone());
                let executions = read(admin, &id).await?;
                let answered = acknowledged.remove(id.as_str()).unwrap_or_default();
                let in_flight = unanswered.remove(id.as_str()).unwrap_or_default();
                findings.check_instance(&id, &executions, &answered, &in_flight);
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        findings
            .commit_problems
            .extend(acknowledged.keys().map(|id| format!("'{id}' had acknowledged commits and is gone")));
        self.check_children(ids_by_job, findings);
        Ok(())
    }

    /// Checks that each job has exactly its expected instances.
    fn check_children(&self, mut ids_by_job: BTreeMap<String, BTreeSet<String>>, findings: &mut Findings) {
        for number in self.client_record.jobs.keys() {
            let job = Job::of(self.seed, *number);
            let own = job.instance();
            let found = ids_by_job.remove(&own).unwrap_or_default();
            let wanted = Expected::of(&job).instance_ids(&own);
            // A job without any instance is already reported as lost.
            if !found.is_empty() && found != wanted {
                findings.unexpected.push(format!("'{own}': expected {wanted:?}, found {found:?}"));
            }
        }
        findings.unexpected.extend(ids_by_job.into_keys().map(|id| format!("'{id}' was never acknowledged")));
    }

    /// Compares the effect ledger with the expected effects of the jobs.
    fn check_effects(&self, findings: &mut Findings) -> Result<(), String> {
        let mut effects = self.ledger.effects()?;
        for number in self.client_record.jobs.keys() {
            let job = Job::of(self.seed, *number);
            let found = effects.remove(&job.instance()).unwrap_or_default();
            let problems = effect_ledger::difference(&Expected::of(&job).effects, &found);
            findings.effects.extend(problems.into_iter().map(|text| format!("'{}': {text}", job.instance())));
        }
        findings.effects.extend(effects.into_keys().map(|job| format!("'{job}' was never acknowledged")));
        let without_attempt = self.ledger.without_attempt()?;
        if without_attempt > 0 {
            findings.effects.push(format!("{without_attempt} effects without a recorded run"));
        }
        Ok(())
    }
}

/// The commits of each instance.
fn by_instance(commits: &[Commit]) -> HashMap<&str, Vec<&Commit>> {
    let mut sorted: HashMap<&str, Vec<&Commit>> = HashMap::new();
    for commit in commits {
        sorted.entry(commit.instance()).or_default().push(commit);
    }
    sorted
}

/// The histories of all executions of an instance.
async fn read(admin: &dyn ProviderAdmin, id: &str) -> Result<BTreeMap<u64, Vec<Event>>, ProviderError> {
    let mut executions = BTreeMap::new();
    for execution in admin.list_executions(id).await? {
        executions.insert(execution, admin.read_history_with_execution_id(id, execution).await?);
    }
    Ok(executions)
}
