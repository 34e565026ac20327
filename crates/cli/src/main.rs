//! The `outlast` command: a demo that survives kills, commands for the instances of a store, a check of new programs, and stress runs.
//!
//! | file | command |
//! |---|---|
//! | `audit.rs`, `execution/`, `metrics.rs`, `queue.rs` | reads of the store as a whole, executions |
//! | `check/` | replays instances with a new build of a program |
//! | `config.rs`, `store/` | profiles of the user; opens the store that `--store` names |
//! | `dead_letter.rs`, `orchestration.rs` | requeues and drops dead letters; pauses and resumes orchestrations |
//! | `demo/` | a shop that demonstrates Outlast |
//! | `doctor/` | looks for states that do not mend themselves |
//! | `feature.rs` | the error for a command of a feature that was not built |
//! | `instance/` | one file per subcommand for operators; `follow.rs`: their `--follow` |
//! | `node.rs` | lists the nodes that report to a store |
//! | `migrate.rs`, `migrate_from/`, `transfer/` | migrations; stores of `duroxide`; moves instances between stores and files |
//! | `record.rs` | the records of the audit of commands that change instances |
//! | `retention.rs` | deletes ended instances, records and dead letters by age |
//! | `licenses.rs` | the licences of the packages in the command |
//! | `serve.rs`, `token.rs` | the HTTP server and its token file |
//! | `shell.rs` | completions and manual pages |
//! | `stress/` | puts a store under load |
//! | `top/` | a screen for the terminal |
//!
//! Commands print through `output.rs` and return a `Failure`.

mod args;
mod audit;
mod check;
mod config;
mod dead_letter;
mod demo;
mod doctor;
#[cfg(all(test, feature = "server", feature = "tui"))]
mod documented;
mod duration;
mod execution;
mod failure;
mod feature;
mod follow;
mod instance;
mod licenses;
mod metrics;
mod migrate;
mod migrate_from;
mod node;
mod orchestration;
mod output;
mod queue;
mod queued;
mod record;
#[cfg(all(test, feature = "server", feature = "tui"))]
mod reference;
mod retention;
#[cfg(feature = "server")]
mod serve;
mod shell;
mod signals;
mod store;
mod stress;
mod terminal;
#[cfg(feature = "server")]
mod token;
#[cfg(feature = "tui")]
mod top;
mod transfer;

use args::{Args, Command};
use clap::Parser;
use failure::Failure;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return feature::missing(&error).map_or_else(|| refused(&error), Failure::report),
    };
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Prints help or a usage error. A quoted argument may be a URL with a password, so its secrets are removed.
fn refused(error: &clap::Error) -> ExitCode {
    let styled = error.render();
    let is_styled = match error.use_stderr() {
        true => io::stderr().is_terminal(),
        false => io::stdout().is_terminal(),
    };
    let coloured = is_styled && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let text = if coloured { styled.ansi().to_string() } else { styled.to_string() };
    let text = store::hide_secrets(text, std::env::args().skip(1));
    // If the text cannot be written, the exit status still reports the error.
    let _ = match error.use_stderr() {
        true => write!(io::stderr(), "{text}"),
        false => write!(io::stdout(), "{text}"),
    };
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1))
}

/// The longest time that the end of the command waits for threads that still read.
const LAST_READS: Duration = Duration::from_millis(500);

fn run(args: Args) -> Result<(), Failure> {
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("the threads of the command could not be started: {error}")))?;
    let result = tokio.block_on(async {
        match args.command {
            Command::Audit(audit) => audit::run(audit).await,
            Command::Check(check) => check::run(check).await,
            Command::Completions(completions) => shell::completions(&completions),
            Command::Config(config) => config::run(&config),
            Command::DeadLetter(letter) => dead_letter::run(letter).await,
            Command::Demo(demo) => demo::run(demo).await,
            Command::Doctor(doctor) => doctor::run(doctor).await,
            Command::Execution(execution) => execution::run(execution).await,
            Command::Instance(instance) => instance::run(instance).await,
            Command::Licenses(licenses) => licenses::run(&licenses),
            Command::Man(man) => shell::man(&man),
            Command::Metrics(metrics) => metrics::run(metrics).await,
            Command::Migrate(migrate) => migrate::run(migrate).await,
            Command::MigrateFrom(migrate) => migrate_from::run(migrate).await,
            Command::Node(node) => node::run(node).await,
            Command::Orchestration(orchestration) => orchestration::run(orchestration).await,
            Command::Queue(queue) => queue::run(queue).await,
            Command::Retention(retention) => retention::run(retention).await,
            #[cfg(feature = "server")]
            Command::Serve(serve) => serve::run(serve).await,
            Command::Stress(stress) => stress::run(stress).await,
            #[cfg(feature = "server")]
            Command::Token(token) => token::run(token),
            #[cfg(feature = "tui")]
            Command::Top(top) => top::run(top).await,
        }
    });
    // A read of standard input or of the terminal does not end by itself.
    tokio.shutdown_timeout(LAST_READS);
    result
}
