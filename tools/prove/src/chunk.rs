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
        let fill = |word: &str| {
            let word = names
                .iter()
                .fold(word.to_string(), |word, (name, value)| word.replace(name, &value.to_string()));
            word.replace("{file}", &file.to_string_lossy())
        };
        command.split_whitespace().map(fill).collect()
    }
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
        chunk.words(job.command, Path::new("out.json")).join(" ")
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
    fn variables_before_the_program_belong_to_its_environment() {
        let words = Chunk { from: 0, size: 1, nth: 0 }.words("A_B=c cargo run x=y", Path::new("f"));
        let command = command(&words);
        assert_eq!(process::display(&command), "cargo run x=y");
        assert!(
            command.get_envs().any(|(name, value)| name == "A_B" && value.is_some_and(|value| value == "c"))
        );
    }
}
