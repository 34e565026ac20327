//! Runs validations and reports their results.

use crate::ProviderFactory;
use crate::catalogue::validations;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

/// The time after which a validation has hung.
const HANG_TIMEOUT: Duration = Duration::from_secs(300);

/// One rule of the contract, ready to be checked.
#[derive(Clone, Copy)]
pub struct Validation {
    /// The group of rules that it belongs to.
    pub category: &'static str,
    /// The function's name.
    pub name: &'static str,
    pub(crate) needs: Needs,
    pub(crate) run: for<'a> fn(&'a dyn ProviderFactory) -> BoxFuture<'a, ()>,
}

/// The capability that a validation needs of the factory besides a clean store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    Waits,
    QueueHooks,
    Pending,
}

impl Validation {
    /// Why this validation does not apply to the factory's store, if it does not.
    pub fn not_applicable(&self, factory: &dyn ProviderFactory) -> Option<&'static str> {
        match self.needs {
            Needs::Waits if !factory.waits() => Some("the store does not park fetches"),
            Needs::QueueHooks if !factory.corrupts_queues() => {
                Some("the factory has no hooks to damage queues")
            }
            Needs::Pending if !factory.shows_pending() => {
                Some("the store does not implement ProviderAdmin::pending")
            }
            _ => None,
        }
    }

    /// Checks the rule; panics if the store breaks it. Does nothing where the rule does not apply.
    pub async fn check(&self, factory: &dyn ProviderFactory) {
        if self.not_applicable(factory).is_none() {
            (self.run)(factory).await;
        }
    }

    /// Checks the rule and catches the panic.
    pub async fn outcome(&self, factory: &dyn ProviderFactory) -> ValidationOutcome {
        if let Some(reason) = self.not_applicable(factory) {
            return ValidationOutcome::NotApplicable(reason);
        }
        let checked = AssertUnwindSafe((self.run)(factory)).catch_unwind();
        match tokio::time::timeout(HANG_TIMEOUT, checked).await {
            Ok(Ok(())) => ValidationOutcome::Passed,
            Ok(Err(panic)) => ValidationOutcome::Failed(panic_text(&*panic)),
            Err(_) => ValidationOutcome::Failed(format!("hung for {} s", HANG_TIMEOUT.as_secs())),
        }
    }
}

impl fmt::Debug for Validation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.category, self.name)
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text.clone(),
        (None, Some(text)) => (*text).to_string(),
        (None, None) => "panicked".to_string(),
    }
}

/// The result of one validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValidationOutcome {
    /// The store keeps the rule.
    Passed,
    /// The store breaks the rule; the text describes the failure.
    Failed(String),
    /// The rule does not apply to this kind of store; the text is the reason.
    NotApplicable(&'static str),
}

/// One line of a report.
#[derive(Debug, Clone)]
pub struct ValidationResult {
    /// The validation.
    pub validation: Validation,
    /// Its result.
    pub outcome: ValidationOutcome,
}

/// The results of a run. `Display` lists the failures and the counts.
#[derive(Debug, Clone, Default)]
pub struct ValidationReport {
    /// One entry per validation, in the order of the catalogue.
    pub results: Vec<ValidationResult>,
}

impl ValidationReport {
    /// The validations that failed, with their texts.
    pub fn failures(&self) -> impl Iterator<Item = (&Validation, &str)> {
        self.results.iter().filter_map(|result| match &result.outcome {
            ValidationOutcome::Failed(text) => Some((&result.validation, text.as_str())),
            _ => None,
        })
    }

    /// Whether no validation failed.
    pub fn is_success(&self) -> bool {
        self.failures().next().is_none()
    }

    fn count(&self, wanted: fn(&ValidationOutcome) -> bool) -> usize {
        self.results.iter().filter(|result| wanted(&result.outcome)).count()
    }
}

impl fmt::Display for ValidationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (validation, text) in self.failures() {
            writeln!(f, "FAILED {validation:?}: {text}")?;
        }
        write!(
            f,
            "{} validations passed, {} failed, {} not applicable",
            self.count(|outcome| *outcome == ValidationOutcome::Passed),
            self.failures().count(),
            self.count(|outcome| matches!(outcome, ValidationOutcome::NotApplicable(_))),
        )
    }
}

/// Runs the whole suite, one validation after the other, and continues after a failure.
pub async fn run_all_validations(factory: &impl ProviderFactory) -> ValidationReport {
    let mut report = ValidationReport::default();
    for validation in validations() {
        let outcome = validation.outcome(factory).await;
        report.results.push(ValidationResult { validation, outcome });
    }
    report
}
