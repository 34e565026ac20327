//! The files in `deploy`: every option, port and path that they name exists, and every process has time to drain.

use crate::support::run;
use std::fs;
use std::path::{Path, PathBuf};

/// Seconds that `outlast serve` gives to open requests after SIGTERM.
const SERVE_GRACE: u64 = 3;
const PORT: &str = "7411";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn file(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("deploy/{name}: {error}"))
}

/// The lines without comments.
fn code(text: &str) -> String {
    text.lines().filter(|line| !line.trim_start().starts_with('#')).collect::<Vec<_>>().join("\n")
}

/// The number after a key.
fn number(text: &str, key: &str) -> u64 {
    let rest = text.split(key).nth(1).unwrap_or_else(|| panic!("no {key}"));
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("{key} has no number"))
}

/// The seconds in `Duration::from_secs(N)` of a comment that shows the user's main.
fn grace_of_worker(text: &str) -> u64 {
    assert!(text.contains("runtime.run_until_signal("), "the file shows how the program drains");
    number(text, "Duration::from_secs(")
}

#[test]
fn options_of_the_deployed_server_exist() {
    let help = run(["serve", "--help"]).fine();
    for name in ["Dockerfile", "outlast.service", "kubernetes/serve.yaml"] {
        let text = code(&file(name));
        let words = text.split(|letter: char| letter.is_whitespace() || "\",[]".contains(letter));
        let options: Vec<&str> = words.filter(|word| word.starts_with("--") && *word != "---").collect();
        let of_docker =
            ["--from=build", "--interval=30s", "--timeout=6s", "--start-period=5s", "--retries=3"];
        let own: Vec<&str> = options
            .into_iter()
            .filter(|option| !of_docker.contains(option) && *option != "--release")
            .filter(|option| *option != "--locked")
            .collect();
        assert!(own.contains(&"--listen") && own.contains(&"--token-file"), "{name}: {own:?}");
        for option in own {
            let exists = help.split_whitespace().any(|word| word.trim_end_matches(',') == option);
            assert!(exists, "{name}: `outlast serve` has no option {option}");
        }
        let ports: Vec<&str> =
            text.split(|letter: char| !letter.is_ascii_digit()).filter(|part| *part == PORT).collect();
        assert!(!ports.is_empty(), "{name} has the port of the server");
    }
    assert!(help.contains("127.0.0.1:7411"), "the default port is that of the files");
}

#[test]
fn supervisors_wait_longer_than_the_drain_takes() {
    for (name, key) in [
        ("outlast-worker@.service", "TimeoutStopSec="),
        ("kubernetes/worker.yaml", "terminationGracePeriodSeconds:"),
    ] {
        let text = file(name);
        let (wait, grace) = (number(&text, key), grace_of_worker(&text));
        assert!(wait >= grace + 5, "{name}: it waits {wait} s for a drain of {grace} s");
    }
    for (name, key) in
        [("outlast.service", "TimeoutStopSec="), ("kubernetes/serve.yaml", "terminationGracePeriodSeconds:")]
    {
        assert!(number(&file(name), key) >= SERVE_GRACE + 5, "{name}");
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/src/serve.rs");
    let source = fs::read_to_string(source).unwrap();
    assert_eq!(number(&source, "const GRACE: Duration = Duration::from_secs("), SERVE_GRACE);
}

#[test]
fn image_and_units_run_without_root() {
    let docker = code(&file("Dockerfile"));
    assert!(docker.contains("USER 65532:65532") && docker.contains("STOPSIGNAL SIGTERM"), "{docker}");
    let toolchain = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rust-toolchain.toml");
    let toolchain = fs::read_to_string(toolchain).unwrap();
    let channel = toolchain.split('"').nth(1).unwrap();
    assert!(docker.contains(&format!("FROM rust:{channel}-")), "the image has the toolchain {channel}");
    for unit in ["outlast.service", "outlast-worker@.service"] {
        let unit = code(&file(unit));
        for line in
            ["DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet="]
        {
            assert!(unit.lines().any(|found| found == line), "{line}");
        }
    }
    for manifest in ["kubernetes/worker.yaml", "kubernetes/serve.yaml"] {
        let text = code(&file(manifest));
        assert!(
            text.contains("runAsNonRoot: true") && text.contains("readOnlyRootFilesystem: true"),
            "{manifest}"
        );
        assert!(text.contains("kind: PodDisruptionBudget"), "{manifest}");
    }
}
