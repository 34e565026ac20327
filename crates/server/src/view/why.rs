//! The diagnosis of an instance.

use crate::app::App;
use crate::problem::Problem;
use outlast::lens::{Diagnosis, Rule};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The diagnosis of an instance: one sentence without payloads.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Why {
    pub(crate) instance: String,
    pub(crate) sentence: String,
    /// The sentence without the id of the instance and without the command, for lists.
    pub(crate) short: String,
    /// The rule that applied, such as `event_not_sent`.
    pub(crate) rule: String,
    /// The command that helps.
    pub(crate) command: Option<String>,
    /// The children in the sentence, with the rules that applied to them.
    pub(crate) children: Vec<Link>,
}

/// A child in the sentence.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Link {
    pub(crate) instance: String,
    pub(crate) rule: String,
}

impl Why {
    fn of(found: &Diagnosis) -> Self {
        let mut children = Vec::new();
        let mut last = found;
        while let Some(child) = last.of_child() {
            children.push(Link { instance: child.instance().to_string(), rule: text(child.rule()) });
            last = child;
        }
        Self {
            instance: found.instance().to_string(),
            sentence: found.sentence(),
            short: short(found),
            rule: text(found.rule()),
            command: found.remedy().map(str::to_string),
            children,
        }
    }
}

fn short(found: &Diagnosis) -> String {
    let sentence = found.sentence();
    let start = format!("Instance '{}' ", found.instance());
    let says = sentence.strip_prefix(&start).unwrap_or(&sentence);
    let end = found.remedy().map(|command| format!(": `{command}`.")).unwrap_or_default();
    let says = says.strip_suffix(&end).unwrap_or(says).trim_end_matches('.');
    // The command that the sentence announces is a field of its own.
    let says = says.rsplit_once("; this command ").map_or(says, |(says, _)| says);
    let mut chars = says.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn text(rule: Rule) -> String {
    match serde_json::to_value(rule) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}

/// The diagnosis. An instance that was started and waits for its first turn has one too.
pub(crate) async fn why(app: &App, id: &str) -> Result<Why, Problem> {
    let found = app.client.diagnose_instance(id, app.options.max_attempts).await?;
    match found.rule().is_of_an_instance() {
        true => Ok(Why::of(&found)),
        false => Err(Problem::no_instance(id)),
    }
}
