//! The output of every command that uses a store, on a store without instances, and on stores that cannot be used.
//!
//! The expected outputs are the files in `snapshots/`, one per store. After an intended change,
//! `OUTLAST_BLESS=1 cargo test -p outlast-cli --all-features --test it snapshots` writes them; then read the diff. A line that begins with
//! `!` is from standard error. Paths, ports, sizes and the schema version of this release are replaced.

use crate::program::LONG;
use crate::support::{Said, damage, outlast, said};
use outlast::providers::sqlite::SqliteProvider;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tokio::time::Instant;

/// The commands, without the option `--store`. Instances that they name do not exist, and `FOLDER` is a temporary folder.
const COMMANDS: &[&str] = &[
    "audit list",
    "check --bin FOLDER/program",
    "dead-letter list",
    "dead-letter show 1",
    "dead-letter requeue 1 --reason test",
    "dead-letter drop 1 --reason test",
    "doctor --min-free 0",
    "execution list nobody",
    "execution prune nobody --keep 1",
    "execution prune --name Order --keep 1 --dry-run",
    "instance list",
    "instance list --held",
    "instance count",
    "instance count --name Order",
    "instance show nobody",
    "instance why nobody",
    "instance history nobody",
    "instance tree nobody",
    "instance kv nobody",
    "instance stats nobody",
    "instance timeline nobody",
    "instance diff nobody other",
    "instance start Order order-1",
    "instance signal nobody go",
    "instance enqueue nobody orders",
    "instance wait nobody --timeout 1ms",
    "instance cancel nobody",
    "instance cancel --name Order --dry-run",
    "instance terminate nobody",
    "instance delete nobody",
    "instance pause nobody",
    "instance resume nobody",
    "instance reset nobody --to-event 1",
    "instance fork nobody --to-event 1 --as copy",
    "instance export nobody --file FOLDER/export.jsonl",
    "instance export --name Order --file FOLDER/all.jsonl",
    "instance import --file FOLDER/import.jsonl",
    "metrics",
    "migrate --check",
    "migrate",
    "node list",
    "orchestration pause Order",
    "orchestration resume Order",
    "orchestration list",
    "queue depths",
    "queue peek turns",
    "retention run --ended-for 30d --dry-run",
    "serve --listen 127.0.0.1:0",
    "top",
];

/// Commands without a store, and commands that create their store, or read the store of another product.
const OTHERS: [&str; 9] = [
    "completions",
    "config show",
    "demo",
    "licenses",
    "man",
    "migrate-from duroxide",
    "stress",
    "token create",
    "token list",
];

/// Commands that fail here before they open the store: there is no file to import, and no terminal.
const FAIL_BEFORE: [&str; 2] = ["instance import", "top"];

/// The commands that run at the same time.
const AT_ONCE: usize = 8;

/// A command and its output.
struct Section {
    command: &'static str,
    said: Said,
}

/// A store, named by its URL or path.
struct Place {
    folder: tempfile::TempDir,
    store: String,
    /// Whether each command gets a copy of the file. Some commands change a store that can be used.
    is_copied: bool,
    at_once: usize,
    known_version: u32,
}

impl Place {
    /// A SQLite file without instances, and its path.
    async fn new() -> (Self, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.db");
        let store = path.to_str().unwrap().to_string();
        drop(SqliteProvider::new(&format!("sqlite:{store}"), None).await.unwrap());
        let known_version = SqliteProvider::schema_state(&format!("sqlite:{store}")).unwrap().known;
        (Self { folder, store, is_copied: false, at_once: AT_ONCE, known_version }, path)
    }

    /// Runs all commands.
    fn sections(&self) -> Vec<Section> {
        let mut sections = Vec::new();
        for some in COMMANDS.chunks(self.at_once) {
            std::thread::scope(|scope| {
                let started: Vec<_> =
                    some.iter().map(|&command| scope.spawn(move || self.section(command))).collect();
                sections.extend(started.into_iter().map(|one| one.join().unwrap()));
            });
        }
        sections
    }

    fn section(&self, command: &'static str) -> Section {
        let folder = self.folder.path().to_str().unwrap();
        let store = match self.is_copied {
            false => self.store.clone(),
            true => {
                let copy = self.folder.path().join(format!("copy for {}", command.replace('/', "-")));
                std::fs::copy(&self.store, &copy).unwrap();
                copy.to_str().unwrap().to_string()
            }
        };
        let words = command.split(' ').map(|word| word.replace("FOLDER", folder));
        let process = outlast(words.chain(["--store".to_string(), store.clone()]));
        let begun = Instant::now();
        let said = if command.starts_with("serve") { served(process) } else { run(process) };
        assert!(begun.elapsed() < LONG, "{command} took {:?}: {said:?}", begun.elapsed());
        let clean = |text: &str| self.cleaned(&text.replace(&store, "STORE").replace(folder, "FOLDER"));
        Section { command, said: Said { code: said.code, out: clean(&said.out), err: clean(&said.err) } }
    }

    /// Replaces texts that differ between machines, runs and releases.
    fn cleaned(&self, text: &str) -> String {
        let mut cleaned = String::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let shown = words.iter().enumerate().map(|(at, word)| {
                let before = if at == 0 { "" } else { words[at - 1] };
                let is_size = words.get(at + 1).is_some_and(|next| next.starts_with("MB"));
                let number = word.trim_end_matches([',', '.', ':', ')']);
                let is_known =
                    ["version", "to"].contains(&before) && number == self.known_version.to_string();
                match () {
                    () if is_size && number.parse::<f64>().is_ok() => "N".to_string(),
                    () if before == "error" && word.trim_end_matches(';').ends_with(')') => {
                        word.replace(|letter: char| letter.is_ascii_digit(), "").replace(')', "N)")
                    }
                    () if is_known => word.replace(number, "KNOWN"),
                    () => without_port(word),
                }
            });
            cleaned += &shown.collect::<Vec<_>>().join(" ");
            cleaned.push('\n');
        }
        cleaned
    }
}

fn without_port(word: &str) -> String {
    const HOST: &str = "127.0.0.1:";
    match word.split_once(HOST) {
        Some((before, after)) => {
            format!("{before}{HOST}PORT{}", after.trim_start_matches(|letter: char| letter.is_ascii_digit()))
        }
        None => word.to_string(),
    }
}

fn run(mut command: Command) -> Said {
    said(command.output().unwrap())
}

/// The output of a server, which is stopped when it has printed its first lines. A server that cannot start ends by itself.
fn served(mut command: Command) -> Said {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut out = String::new();
    for _ in 0..3 {
        lines.read_line(&mut out).unwrap();
    }
    if !out.is_empty() {
        assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    }
    lines.read_to_string(&mut out).unwrap();
    Said { out, ..said(child.wait_with_output().unwrap()) }
}

/// The text of the sections, as it is in the file.
fn text(sections: &[Section]) -> String {
    let section = |section: &Section| {
        let Said { code, out, err } = &section.said;
        let errors: String = err.lines().map(|line| format!("! {line}\n")).collect();
        format!("$ outlast {}\n{out}{errors}exit status {}\n", section.command, code.unwrap())
    };
    sections.iter().map(section).collect::<Vec<_>>().join("\n")
}

/// Compares the output with its file, or writes the file.
#[track_caller]
fn check(file: &str, sections: &[Section]) {
    let found = text(sections);
    assert!(!found.contains("panicked"), "{found}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/snapshots").join(file);
    if std::env::var_os("OUTLAST_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &found).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let known: Vec<&str> = expected.trim_end().split("\n\n").collect();
    let changed: Vec<&str> = found.trim_end().split("\n\n").filter(|part| !known.contains(part)).collect();
    assert!(
        expected == found,
        "snapshots/{file} differs; if the change is intended, OUTLAST_BLESS=1 writes it:\n{}",
        changed.join("\n\n")
    );
}

/// Every command that opens the store fails with this status, prints nothing else, and says why in one line.
#[track_caller]
fn check_failures(sections: &[Section], status: i32) {
    for Section { command, said } in sections {
        if FAIL_BEFORE.iter().any(|other| command.starts_with(other)) {
            continue;
        }
        assert_eq!((said.code, said.out.as_str()), (Some(status), ""), "{command}: {said:?}");
        assert!(said.err.starts_with("error: ") && said.err.lines().count() == 1, "{command}: {said:?}");
    }
}

#[test]
fn every_command_of_the_reference_has_a_snapshot_or_uses_no_store() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md")).unwrap();
    let headings = page.lines().filter_map(|line| line.strip_prefix("### `outlast "));
    let commands: Vec<String> = headings
        .map(|heading| {
            let words = heading.trim_end_matches('`').split(' ');
            words.take_while(|word| word.starts_with(|letter: char| letter.is_ascii_lowercase())).collect()
        })
        .map(|words: Vec<&str>| words.join(" "))
        .collect();
    assert!(commands.len() > 40, "{commands:?}");
    for command in &commands {
        let own = format!("{command} ");
        let is_run = COMMANDS.iter().any(|line| format!("{line} ").starts_with(&own));
        assert!(
            is_run != OTHERS.contains(&command.as_str()),
            "`outlast {command}` is in one of the two lists"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn store_without_instances_has_an_answer_to_every_command() {
    let (place, _) = Place::new().await;
    let place = Place { is_copied: true, ..place };
    check("empty.txt", &place.sections());
}

#[tokio::test(flavor = "multi_thread")]
async fn file_that_does_not_exist_is_a_failure_of_every_command() {
    let (place, path) = Place::new().await;
    std::fs::remove_file(&path).unwrap();
    let sections = place.sections();
    check_failures(&sections, 1);
    assert!(!path.exists(), "no command creates the store");
    check("missing.txt", &sections);
}

#[tokio::test(flavor = "multi_thread")]
async fn file_that_another_process_has_locked_is_unavailable_to_every_command() {
    let (place, path) = Place::new().await;
    let owner = rusqlite::Connection::open(&path).unwrap();
    owner.pragma_update(None, "locking_mode", "exclusive").unwrap();
    owner.execute_batch("BEGIN EXCLUSIVE").unwrap();
    // The processes only wait for the lock, all at the same time.
    let place = Place { at_once: COMMANDS.len(), ..place };
    let sections = place.sections();
    check_failures(&sections, 7);
    check("locked.txt", &sections);
    drop(owner);
}

#[tokio::test(flavor = "multi_thread")]
async fn file_that_another_process_writes_is_read_and_not_changed() {
    let (place, path) = Place::new().await;
    let owner = rusqlite::Connection::open(&path).unwrap();
    owner.execute_batch("BEGIN IMMEDIATE").unwrap();
    let place = Place { at_once: COMMANDS.len(), ..place };
    check("busy.txt", &place.sections());
    drop(owner);
}

#[tokio::test(flavor = "multi_thread")]
async fn store_of_a_newer_release_is_refused_by_every_command() {
    let (place, path) = Place::new().await;
    damage(&path, "INSERT INTO outlast_migrations VALUES (99, 'later', 'x', 99, 0)");
    let sections = place.sections();
    check_failures(&sections, 7);
    check("newer.txt", &sections);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_does_not_answer_is_unavailable_to_every_command() {
    let (place, _) = Place::new().await;
    // Nothing listens on this port of the loopback.
    let place = Place { store: "postgres://me@127.0.0.1:1/db?sslmode=disable".to_string(), ..place };
    let sections = place.sections();
    check_failures(&sections, 7);
    check("unreachable.txt", &sections);
}
