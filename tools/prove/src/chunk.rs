//! A part of a job, and the command that runs it.

use std::path::Path;
use std::process::Command;

use outlast_toolkit::process;

/// Units of a job that one command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The units that were done before.
    pub(crate) from: u64,
    pub(crate) size: u64,
    /// The chunks that were done before.
    pub(crate) nth: u64,
}

impl Chunk {
    /// The words of the command line. `file` receives the figures.
    pub(crate) fn words(&self, command: &str, file: &Path) -> Vec<String> {
        let names = [
            ("{from}", self.from),
            ("{to}", self.from + self.size),
            ("{size}", self.size),
            ("{nth}", self.nth),
            ("{seed}", self.nth + 1),
        ];
        let depth = if self.nth == 0 { "usual" } else { "deep" };
        let fill = |word: String| {
            let word = names.iter().fold(word, |word, (name, value)| word.replace(name, &value.to_string()));
            word.replace("{depth}", depth).replace("{file}", &file.to_string_lossy())
        };
        quoted(command).into_iter().map(fill).collect()
    }

    /// The command line, for a reader. `file` receives the figures.
    pub(crate) fn line(&self, command: &str, file: &Path) -> String {
        let shown = |word: String| if word.contains(' ') { format!("'{word}'") } else { word };
        self.words(command, file).into_iter().map(shown).collect::<Vec<_>>().join(" ")
    }
}

/// The words of a line. A word in single quotes may have spaces.
fn quoted(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().map(str::to_string).collect(),
        _ => vec![part.to_string()],
    });
    words.collect()
}

/// The command of these words. Words of the form `NAME=VALUE` at the start set variables of its environment.
pub(crate) fn command(words: &[String]) -> Command {
    let is_variable = |word: &&String| {
        word.split_once('=')
            .is_some_and(|(name, _)| name.chars().all(|char| char.is_ascii_uppercase() || char == '_'))
    };
    let (variables, words) = words.split_at(words.iter().take_while(is_variable).count());
    let mut command = match words {
        [program, args @ ..] if program == "cargo" => process::cargo(args),
        [program, args @ ..] => {
            let mut command = Command::new(program);
            command.args(args).current_dir(process::root());
            command
        }
        [] => Command::new(""),
    };
    command.envs(variables.iter().filter_map(|word| word.split_once('=')));
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::JOBS;

    fn line(name: &str, chunk: Chunk) -> String {
        let job = JOBS.iter().find(|job| job.name == name).unwrap();
        chunk.line(job.command, Path::new("out.json"))
    }

    #[test]
    fn the_command_line_names_the_units_of_the_chunk() {
        let chunk = Chunk { from: 20_000, size: 10_000, nth: 2 };
        assert_eq!(line("sim", chunk), "cargo xtask sim --seeds 20000..30000 --json out.json");
        assert_eq!(
            line("mutants", chunk),
            "cargo xtask postgres -- cargo xtask mutants --shard 2/16 --json out.json"
        );
        assert!(line("chaos", chunk).starts_with("cargo xtask chaos sqlite --kills 10000 --seed 3 "));
    }

    #[test]
    fn models_are_deep_after_the_first_chunk() {
        let line = |nth| line("models", Chunk { from: nth, size: 1, nth });
        assert!(
            line(0).starts_with("OUTLAST_MODEL_DEPTH=usual ")
                && line(1).starts_with("OUTLAST_MODEL_DEPTH=deep ")
        );
    }

    #[test]
    fn word_in_quotes_keeps_its_spaces() {
        let chunk = Chunk { from: 0, size: 1, nth: 0 };
        let (command, file) = ("sh -c 'echo {size} > {file}'", Path::new("f"));
        assert_eq!(chunk.words(command, file), ["sh", "-c", "echo 1 > f"]);
        assert_eq!(chunk.line(command, file), "sh -c 'echo 1 > f'");
    }

    #[test]
    fn variables_before_the_program_belong_to_its_environment() {
        let words = Chunk { from: 0, size: 1, nth: 0 }.words("A_B=c cargo run x=y", Path::new("f"));
        let command = command(&words);
        assert_eq!(process::display(&command), "cargo run x=y");
        assert!(
            command.get_envs().any(|(name, value)| name == "A_B" && value.is_some_and(|value| value == "c"))
        );
    }
}
