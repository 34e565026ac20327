//! `outlast completions` and `outlast man`: made from the command line itself.

use crate::args::Args;
use crate::failure::Failure;
use clap::{Args as ClapArgs, CommandFactory};
use clap_complete::Shell;
use std::io::{self, Write};
use std::path::PathBuf;

/// Print the completion script of a shell.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  outlast completions bash > ~/.local/share/bash-completion/completions/outlast
  outlast completions zsh > ~/.zfunc/_outlast
  outlast completions fish > ~/.config/fish/completions/outlast.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Print the manual page of the command, or write the pages of all its subcommands.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  outlast man | man -l -
  outlast man --dir ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// An existing folder, into which a page per subcommand is written
    #[arg(long, value_name = "PATH")]
    dir: Option<PathBuf>,
}

pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "outlast", &mut script);
    Ok(io::stdout().write_all(&script)?)
}

pub(crate) fn man(args: &ManArgs) -> Result<(), Failure> {
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Args::command()).render(&mut page)?;
        return Ok(io::stdout().write_all(&page)?);
    };
    clap_mangen::generate_to(Args::command(), dir)
        .map_err(|error| Failure::new(format!("the pages cannot be written to '{}': {error}", dir.display())))
}
