//! The program that is checked, as a process.

use crate::failure::Failure;
use outlast::runtime::check::{Greeting, PREFIX, PROTOCOL, VARIABLE};
use serde::de::DeserializeOwned;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, BufWriter, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A program that answers.
pub(super) struct Program {
    pub(super) path: String,
    pub(super) questions: BufWriter<ChildStdin>,
    pub(super) answers: Answers,
    pub(super) child: Child,
}

/// The answers among the lines that the program prints.
pub(super) struct Answers(Lines<BufReader<ChildStdout>>);

impl Program {
    /// Starts a program, and waits for its greeting.
    pub(super) async fn start(bin: &Path, args: &[String], patience: Duration) -> Result<Self, Failure> {
        let path = bin.display().to_string();
        // A name without a folder is a file here, as for other paths of the command, and no command of the search path.
        let file = if bin.components().count() == 1 { Path::new(".").join(bin) } else { bin.to_path_buf() };
        let mut command = Command::new(file);
        command.args(args).env(VARIABLE, PROTOCOL).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child =
            command.spawn().map_err(|error| Failure::new(format!("'{path}' cannot be started: {error}")))?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::new(format!("'{path}' has no standard input and output")));
        };
        let mut answers = Answers(BufReader::with_capacity(1 << 16, answers).lines());
        let greeting = tokio::time::timeout(patience, answers.next::<Greeting>()).await;
        match greeting {
            Ok(Ok(Some(greeting))) if greeting.protocol == PROTOCOL => {}
            Ok(Ok(Some(greeting))) => {
                return Err(Failure::new(format!(
                    "'{path}' speaks version {} of the protocol, and this command {PROTOCOL}: use the command of the same \
                     release",
                    greeting.protocol
                )));
            }
            Ok(Ok(None)) => return Err(Failure::new(silent(&path, "ended without an answer"))),
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                return Err(Failure::new(silent(&path, &format!("did not answer within {patience:?}"))));
            }
        }
        let questions = BufWriter::with_capacity(1 << 16, questions);
        Ok(Self { path, questions, answers, child })
    }
}

fn silent(path: &str, how: &str) -> String {
    format!(
        "'{path}' {how}, so it could not be asked: a program answers at RuntimeBuilder::answer_check, or when it starts its \
         runtime. Give it the arguments that start its runtime after `--`; its error output says more"
    )
}

impl Answers {
    /// The next answer; `None` at the end.
    ///
    /// Cancellation safety: an answer that was read in part is lost, so a cancelled call must not be repeated.
    pub(super) async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Failure> {
        while let Some(line) = self.0.next_line().await? {
            if let Some(answer) = line.strip_prefix(PREFIX) {
                let answer = serde_json::from_str(answer).map_err(|error| {
                    Failure::new(format!(
                        "an answer of the program cannot be read ({error}): is it of another release?"
                    ))
                })?;
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }
}
