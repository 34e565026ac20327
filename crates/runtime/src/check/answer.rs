//! A program that answers `outlast check` instead of starting its runtime.

use super::build::Build;
use super::misfit::{Cause, Checked, Recorded};
use super::protocol::{Finding, Greeting, PREFIX, PROTOCOL, Question, VARIABLE, Verdict};
use outlast_engine::{Opening, in_words};
use outlast_model::{Event, EventKind};
use serde::Serialize;
use std::io::{self, BufRead, BufWriter, Write};
use std::process::exit;

/// The number of answers that are written together.
const TOGETHER: u32 = 64;

/// Answers the command and ends the process, if this process was started by `outlast check`.
pub(crate) fn answer_and_exit(build: impl FnOnce() -> Option<Build>) {
    let Some(asked) = std::env::var_os(VARIABLE) else { return };
    if asked != PROTOCOL {
        refuse(&format!("{VARIABLE} asks for protocol {asked:?}, and this program speaks {PROTOCOL}"));
    }
    // The caller reports the problems of its registration.
    let Some(build) = build() else { return };
    match answer(&build, io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => exit(0),
        Err(error) => refuse(&format!("the questions of `outlast check` cannot be answered: {error}")),
    }
}

fn refuse(text: &str) -> ! {
    // If the text cannot be written, the exit status still reports the failure.
    let _ = writeln!(io::stderr(), "error: {text}");
    exit(1)
}

/// Answers every question until the end of the input by a replay: no activity runs, and nothing is stored.
///
/// # Errors
///
/// A question that cannot be read, or an answer that cannot be written.
pub fn answer(build: &Build, questions: impl BufRead, answers: impl Write) -> io::Result<()> {
    let mut answers = BufWriter::new(answers);
    let orchestrations = build.orchestrations.contents().collect();
    // The program may have printed a part of a line.
    answers.write_all(b"\n")?;
    write_line(&mut answers, &Greeting { protocol: PROTOCOL.to_string(), orchestrations })?;
    answers.flush()?;
    let mut unsent = 0;
    for line in questions.lines() {
        let question: Question = serde_json::from_str(&line?)?;
        write_line(&mut answers, &verdict(build, question))?;
        unsent += 1;
        if unsent == TOGETHER {
            answers.flush()?;
            unsent = 0;
        }
    }
    answers.flush()
}

fn write_line(to: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    to.write_all(PREFIX.as_bytes())?;
    serde_json::to_writer(&mut *to, line)?;
    to.write_all(b"\n")
}

/// Replays the history of a question, and describes the first event that the code does not repeat.
fn verdict(build: &Build, question: Question) -> Verdict {
    let Question { instance, execution_id, history, kv, locate } = question;
    let opening = history.first().and_then(|first| Opening::of_event(&first.kind));
    let (name, version) = opening.map_or_else(Default::default, |opening| (opening.name, opening.version));
    let kv = kv.into_iter().map(|(key, item)| (key, item.into())).collect();
    let recorded = Recorded { instance: &instance, execution_id, history: &history, kv };
    let Checked { misfit, patches, located } = recorded.check(build, locate);
    let mut verdict = Verdict {
        execution_id,
        orchestration: name,
        version: version.unwrap_or_default(),
        finding: Finding::Safe,
        event_id: None,
        recorded: None,
        recorded_type: None,
        now: None,
        now_type: None,
        site: None,
        located,
        patches,
        instance: String::new(),
    };
    if let Some(misfit) = misfit {
        (verdict.finding, verdict.now) = words(misfit.cause, &history);
        verdict.now_type = misfit.decision.map(str::to_string);
        verdict.event_id = Some(misfit.event_id).filter(|id| *id > 0);
        let event = history.iter().find(|event| event.event_id == misfit.event_id);
        verdict.recorded = event.map(|event| in_words(event, &history));
        verdict.recorded_type = event.map(|event| event.kind.type_name().to_string());
        verdict.site = misfit.site;
    }
    Verdict { instance, ..verdict }
}

/// The finding, and in words the behaviour of the code instead of the recorded event. The words contain no payload.
fn words(cause: Cause, history: &[Event]) -> (Finding, Option<String>) {
    let (finding, now) = match cause {
        Cause::NoCode => (Finding::Unregistered, "no orchestration has this name and version".to_string()),
        Cause::Undecodable => {
            (Finding::Undecodable, "the input does not decode as the type of the code".into())
        }
        Cause::Panics => (Finding::Diverges, "the code panics".to_string()),
        Cause::Mismatch(text) => (Finding::Diverges, text),
        Cause::Decides(event) => (Finding::Diverges, decides(&event, history)),
        Cause::DecidesNothing => (Finding::Diverges, "the code makes no decision".to_string()),
    };
    (finding, Some(now))
}

/// The decision of the code, in words.
fn decides(event: &Event, history: &[Event]) -> String {
    match &event.kind {
        EventKind::OrchestrationCompleted { .. } => "the code returns a value".to_string(),
        EventKind::OrchestrationFailed { .. } => "the code returns an error".to_string(),
        EventKind::OrchestrationContinuedAsNew { .. } => "the code continues as new".to_string(),
        _ => format!("the code asks for {}", in_words(event, history)),
    }
}
