//! `cargo xtask scoreboard`: what was tried in order to break the promises, and how often. Figures come from the files that
//! the commands write with `--json`; the page is generated from them and never edited.

mod page;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::{Value, json};

use crate::process;

/// Where the page is.
pub(crate) const PAGE: &str = "docs/reliability.md";
/// Where its figures are.
const FIGURES: &str = "testdata/scoreboard";

/// One kind of attempt.
pub(crate) struct Attempt {
    /// Its file, without the extension.
    name: &'static str,
    title: &'static str,
    /// What it does, in one sentence.
    about: &'static str,
    /// What repeats it.
    command: &'static str,
}

const ATTEMPTS: &[Attempt] = &[
    Attempt {
        name: "sim",
        title: "Simulated worlds",
        about: "The shipped runtime and stores in virtual time on one thread, one to four processes, a random half of \
                all faults per seed, fourteen invariants checked while it runs and at the end.",
        command: "cargo xtask sim --seeds 0..100000",
    },
    Attempt {
        name: "score",
        title: "Known defects that the simulator must find",
        about: "Each is put in on purpose, one at a time; seeds are tried in order until an invariant breaks.",
        command: "cargo xtask sim --score 0..1000",
    },
    Attempt {
        name: "sweep",
        title: "The sweep",
        about: "Every script again for every call, statement and poll, with a fault right there: same outcome required.",
        command: "cargo xtask sim --sweep all",
    },
    Attempt {
        name: "models",
        title: "Models",
        about: "The lease, work-queue and parent-child protocols, all their states; known bugs as flags must be found.",
        command: "OUTLAST_MODEL_DEPTH=deep OUTLAST_MODEL_JSON=FILE cargo test --profile sim -p outlast-sim model::",
    },
    Attempt {
        name: "chaos",
        title: "Killed processes",
        about: "Real worker processes on one SQLite file, killed at random and inside commits, stopped beyond their \
                leases; a ledger in another database proves effects.",
        command: "cargo xtask chaos sqlite --kills 1000 --instances 50000 --minutes 15 --pace 300 --in-flight 96 --release",
    },
    Attempt {
        name: "chaos-postgres",
        title: "Killed processes and servers",
        about: "Three worker processes on one PostgreSQL, killed at random and inside commits, stopped beyond their leases; \
                its processes ended, the server crashed, connections cut in the middle of commits; a ledger in another \
                database proves effects.",
        command: "cargo xtask chaos postgres --kills 500 --instances 20000 --minutes 14 --pace 400 --in-flight 96 --release",
    },
    Attempt {
        name: "power",
        title: "Power cuts",
        about: "A disk under SQLite that drops, reorders and tears what was not synced when the power goes.",
        command: "cargo xtask chaos power --cuts 6000",
    },
    Attempt {
        name: "fuzz",
        title: "Fuzzing",
        about: "Coverage-guided: stored rows, damaged databases, filters and cursors, migration ledgers.",
        command: "cargo xtask fuzz --minutes 4",
    },
    Attempt {
        name: "stress",
        title: "Stress runs",
        about: "Fan-outs of short activities and large payloads under load: every instance completes, and the targets of \
                docs/performance.md are met.",
        command: "cargo xtask postgres -- sh -c 'outlast stress --store memory --store sqlite::memory: --store \
                  sqlite:stress.db --store $OUTLAST_TEST_POSTGRES_URL --pool-size 2,10,20 --preset \
                  baseline,default,wide,large-payload --check --json FILE'",
    },
    Attempt {
        name: "mutants",
        title: "Mutants",
        about: "The code is changed in one place, and a test of the same crate must notice.",
        command: "cargo xtask mutants",
    },
];

pub(crate) fn details() -> String {
    let names: Vec<&str> = ATTEMPTS.iter().map(|attempt| attempt.name).collect();
    format!(
        "without arguments: writes {PAGE} from {FIGURES}/*.json\n\
         add NAME FILE: takes the figures that a command wrote with --json, with today's commit, and writes the page\n\
         names: {}",
        names.join(", ")
    )
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode, String> {
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => {}
        ["add", name, file] => add(name, Path::new(file))?,
        _ => return Err(format!("scoreboard: unknown arguments\n\n{}", details())),
    }
    let root = process::root();
    write(&root.join(PAGE), &generate(&root)?)?;
    println!("{PAGE} is written");
    Ok(ExitCode::SUCCESS)
}

fn add(name: &str, file: &Path) -> Result<(), String> {
    if !ATTEMPTS.iter().any(|attempt| attempt.name == name) {
        return Err(format!("scoreboard: there is no '{name}'\n\n{}", details()));
    }
    let figures = read(file)?;
    let record = json!({
        "commit": git(&["rev-parse", "--short=10", "HEAD"])?,
        "date": git(&["log", "-1", "--format=%cs"])?,
        "figures": figures,
    });
    write(&figures_of(&process::root(), name), &format!("{record:#}\n"))
}

fn figures_of(root: &Path, name: &str) -> PathBuf {
    root.join(FIGURES).join(format!("{name}.json"))
}

/// The page that belongs to the figures.
pub(crate) fn generate(root: &Path) -> Result<String, String> {
    let mut records = Vec::new();
    for attempt in ATTEMPTS {
        let file = figures_of(root, attempt.name);
        records.push((attempt, if file.exists() { Some(read(&file)?) } else { None }));
    }
    Ok(page::page(&records))
}

fn read(file: &Path) -> Result<Value, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    let folder = file.parent().map_or(Ok(()), fs::create_dir_all);
    folder.and_then(|()| fs::write(file, text)).map_err(|error| format!("{}: {error}", file.display()))
}

fn git(args: &[&str]) -> Result<String, String> {
    let output = Command::new("git").args(args).current_dir(process::root()).output();
    let output = output.map_err(|error| format!("git could not be run: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_string()),
        false => Err(format!("git {} failed", args.join(" "))),
    }
}
