//! Prepares a release of this repository. `cargo xtask` passes these commands on.
//!
//! | file | command |
//! |---|---|
//! | `licenses.rs` | the licences that `outlast licenses` prints |
//! | `publish.rs` | the packages for the registry in their order, packed and compiled without an upload |
//! | `versions.rs` | the oldest allowed dependencies, changes of the API since a release, pages as docs.rs builds them |
//! | `dist/` | archives of the command, with checksums |
//! | `book/` | the pages of the repository as a book |
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints to its terminal")]

mod book;
mod dist;
mod licenses;
mod publish;
mod versions;

use std::process::ExitCode;

use clap::Parser;

/// Prepares a release of this repository.
#[derive(Parser)]
#[command(name = "release", bin_name = "cargo xtask")]
enum Cli {
    /// Writes the licences that `outlast licenses` prints; a test reports an outdated file
    Licenses,
    /// Lists the packages for the registry in their order; with `--dry-run` packs and compiles them too
    Publish(publish::Args),
    /// Compiles the published packages with the oldest versions that their manifests allow
    MinimalVersions,
    /// Compares the public API with a release, by `cargo semver-checks`
    Semver(versions::SemverArgs),
    /// Builds the API documentation of each published package alone, as docs.rs does; warnings are errors
    DocsRs,
    /// Builds archives of the command, with completions, manual pages, licences and checksums
    Dist(dist::Args),
    /// Builds the pages of this repository as a book with a search, and checks its links
    Book(book::Args),
}

fn main() -> ExitCode {
    Cli::parse().run().unwrap_or_else(|message| {
        eprintln!("release: {message}");
        ExitCode::from(2)
    })
}

impl Cli {
    fn run(self) -> Result<ExitCode, String> {
        match self {
            Self::Licenses => licenses::run(),
            Self::Publish(args) => publish::run(&args),
            Self::MinimalVersions => versions::minimal(),
            Self::Semver(args) => versions::semver(&args),
            Self::DocsRs => versions::docs_rs(),
            Self::Dist(args) => dist::run(&args),
            Self::Book(args) => book::run(&args),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn every_command_has_a_description_and_wrong_arguments_are_refused() {
        Cli::command().debug_assert();
        assert!(Cli::command().get_subcommands().all(|command| command.get_about().is_some()));
        let parse = |line: &str| Cli::try_parse_from(["release"].into_iter().chain(line.split_whitespace()));
        for line in ["publish", "publish --dry-run", "semver --since HEAD~1", "dist", "book --api"] {
            assert!(parse(line).is_ok(), "{line}");
        }
        for line in ["", "publish now", "dist --fast", "semver HEAD"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
