//! `cargo xtask scoreboard`: writes the page about attempts to break the promises. The figures come from the files that
//! the commands write with `--json`. The page is generated and never edited by hand.

mod page;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

use outlast_toolkit::{files, process};

/// The page.
pub(crate) const PAGE: &str = "docs/reliability.md";
/// The folder of the figures.
const FIGURES: &str = "testdata/scoreboard";

/// One kind of attempt.
pub(crate) struct Attempt {
    /// The name of its file, without the extension.
    name: &'static str,
    title: &'static str,
    /// One sentence about the attempt, for the page.
    about: &'static str,
    /// The command that repeats the attempt.
    command: &'static str,
}

const ATTEMPTS: &[Attempt] = &[
    Attempt {
        name: "sim",
        title: "Simulated worlds",
        about: "The shipped runtime and stores run in virtual time on one thread, with one to four processes and a random half of \
                all faults per seed. Fourteen invariants are checked during the run and at the end.",
        command: "cargo xtask sim --seeds 0..100000",
    },
    Attempt {
        name: "score",
        title: "Known defects that the simulator must find",
        about: "Each defect is enabled alone; seeds are tried in order until an invariant fails.",
        command: "cargo xtask sim --score 0..1000",
    },
    Attempt {
        name: "sweep",
        title: "The sweep",
        about: "Every script runs again for every call, statement and poll, with a fault at that moment. The outcome must be the same.",
        command: "cargo xtask sim --sweep all",
    },
    Attempt {
        name: "models",
        title: "Models",
        about: "All states of the lease, activity-queue and parent-child protocols are explored. Known bugs, enabled one by one, must be found.",
        command: "OUTLAST_MODEL_DEPTH=deep OUTLAST_MODEL_JSON=FILE cargo test --profile sim -p outlast-sim model::",
    },
    Attempt {
        name: "chaos",
        title: "Killed processes",
        about: "Real worker processes on one SQLite file are killed at random and inside commits, and stopped beyond their \
                leases. A ledger in another database records the external effects.",
        command: "cargo xtask chaos sqlite --kills 1000 --instances 50000 --minutes 15 --pace 300 --in-flight 96 --release",
    },
    Attempt {
        name: "chaos-postgres",
        title: "Killed processes and servers",
        about: "Three worker processes on one PostgreSQL are killed at random and inside commits, and stopped beyond their leases. \
                Backends are terminated, the server is crashed, and connections are cut in the middle of commits. A ledger in \
                another database records the external effects.",
        command: "cargo xtask chaos postgres --kills 500 --instances 20000 --minutes 14 --pace 400 --in-flight 96 --release",
    },
    Attempt {
        name: "power",
        title: "Power cuts",
        about: "A simulated disk under SQLite drops, reorders and tears unsynced writes at a power cut.",
        command: "cargo xtask chaos power --cuts 6000",
    },
    Attempt {
        name: "fuzz",
        title: "Fuzzing",
        about: "Coverage-guided inputs: stored rows, damaged databases, filters and list positions, migration tables.",
        command: "cargo xtask fuzz --minutes 4",
    },
    Attempt {
        name: "stress",
        title: "Stress runs",
        about: "Fan-outs of short activities, and large payloads, under load. Every instance must complete, and the targets of \
                docs/performance.md must be met.",
        command: "cargo xtask postgres -- sh -c 'outlast stress --store memory --store sqlite::memory: --store \
                  sqlite:stress.db --store $OUTLAST_TEST_POSTGRES_URL --pool-size 2,10,20 --preset \
                  baseline,default,wide,large-payload --check --json FILE'",
    },
    Attempt {
        name: "mutants",
        title: "Mutants",
        about: "The code is changed in one place at a time, and a test of the same crate must fail.",
        command: "cargo xtask mutants",
    },
];

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Records the figures that a command wrote with --json, with the current commit, and writes the page
    Add {
        /// The name of the attempt
        #[arg(value_parser = PossibleValuesParser::new(ATTEMPTS.iter().map(|attempt| attempt.name)))]
        name: String,
        /// The file that the command wrote
        file: PathBuf,
    },
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, String> {
    if let Some(Action::Add { name, file }) = &args.action {
        add(name, file)?;
    }
    let root = process::root();
    files::write(&root.join(PAGE), &generate(&root)?)?;
    println!("wrote {PAGE}");
    Ok(ExitCode::SUCCESS)
}

fn add(name: &str, file: &Path) -> Result<(), String> {
    let record = json!({
        "commit": git(&["rev-parse", "--short=10", "HEAD"])?,
        "date": git(&["log", "-1", "--format=%cs"])?,
        "figures": read(file)?,
    });
    files::write(&figures_of(&process::root(), name), &format!("{record:#}\n"))
}

fn figures_of(root: &Path, name: &str) -> PathBuf {
    root.join(FIGURES).join(format!("{name}.json"))
}

/// The text of the page for the recorded figures.
pub(crate) fn generate(root: &Path) -> Result<String, String> {
    let mut records = Vec::new();
    for attempt in ATTEMPTS {
        let file = figures_of(root, attempt.name);
        records.push((attempt, if file.exists() { Some(read(&file)?) } else { None }));
    }
    Ok(page::page(&records))
}

fn read(file: &Path) -> Result<Value, String> {
    serde_json::from_str(&files::read(file)?).map_err(|error| format!("{}: {error}", file.display()))
}

fn git(args: &[&str]) -> Result<String, String> {
    process::output(Command::new("git").args(args).current_dir(process::root()))
        .map(|text| text.trim().to_string())
}
