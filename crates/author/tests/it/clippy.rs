//! The clippy configuration for crates of orchestrations, as `cargo clippy` reads it.

use std::fs;
use std::path::Path;
use std::process::Command;

const CONFIGURATION: &str = include_str!("../../../../docs/clippy-orchestrations.toml");

/// Uses every path of the standard library that the configuration has, and some of tokio.
const FORBIDDEN: &str = r#"
pub fn forbidden() {
    let _ = std::time::SystemTime::now();
    let _ = std::time::Instant::now();
    let _ = std::thread::spawn(|| std::thread::sleep(std::time::Duration::ZERO));
    let _ = std::fs::read("order");
    let _ = std::fs::read_to_string("order");
    let _ = std::fs::write("order", "");
    let _ = std::env::var("REGION");
    tokio::spawn();
    tokio::time::sleep();
    tokio::select!();
}
pub type Map = std::collections::HashMap<u8, u8>;
pub type Set = std::collections::HashSet<u8>;
"#;

const OF_TOKIO: &[&str] = &["tokio::spawn", "tokio::time::sleep", "tokio::select"];

/// Has the paths of tokio that `FORBIDDEN` uses.
const TOKIO: &str = r"
pub fn spawn() {}
pub mod time {
    pub fn sleep() {}
}
#[macro_export]
macro_rules! select {
    () => {{ let _ = 0; }};
}
";

/// The output of `cargo clippy` in a package with these dependencies and files. It downloads nothing.
fn clippy(name: &str, dependencies: &str, files: &[(&str, &str)]) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // Cargo would repeat the result of an earlier run.
    drop(fs::remove_dir_all(&folder));
    let manifest = format!(
        "[package]\nname = \"{name}\"\nedition = \"2024\"\n\n[dependencies]\n{dependencies}\n\n[workspace]\n"
    );
    for (file, text) in [("Cargo.toml", &*manifest)].iter().chain(files) {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let output = Command::new(env!("CARGO"))
        .args(["clippy", "--quiet", "--offline", "--target-dir", "target"])
        .current_dir(&folder)
        .env_remove("CLIPPY_CONF_DIR")
        .output()
        .unwrap();
    [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat()
}

#[test]
fn clippy_reports_every_forbidden_path_with_its_reason() {
    let files = [
        ("clippy.toml", CONFIGURATION),
        ("src/lib.rs", FORBIDDEN),
        ("tokio/Cargo.toml", "[package]\nname = \"tokio\"\nedition = \"2024\"\n"),
        ("tokio/src/lib.rs", TOKIO),
    ];
    let reported = clippy("clippy-forbidden", "tokio.path = \"tokio\"", &files);
    let mut tried = 0;
    for line in CONFIGURATION.lines().filter(|line| line.contains("path = ")) {
        let mut texts = line.split('"').skip(1).step_by(2);
        let (path, reason) = (texts.next().unwrap(), texts.next().unwrap());
        if path.starts_with("std::") || OF_TOKIO.contains(&path) {
            assert!(reported.contains(&format!("`{path}`")), "{path}:\n{reported}");
            assert!(reported.contains(reason), "{reason}:\n{reported}");
            tried += 1;
        }
    }
    assert_eq!(tried, 13, "{reported}");
}

#[test]
fn a_crate_without_forbidden_calls_and_without_tokio_has_no_warning() {
    let allowed = "pub fn add(one: u64, other: u64) -> u64 {\n    one + other\n}\n";
    let files = [("clippy.toml", CONFIGURATION), ("src/lib.rs", allowed)];
    assert_eq!(clippy("clippy-allowed", "", &files), "");
}

#[test]
fn clippy_reports_a_path_that_does_not_exist() {
    let configuration = CONFIGURATION.replace("std::env::var", "std::env::variable");
    let files = [("clippy.toml", &*configuration), ("src/lib.rs", "")];
    let reported = clippy("clippy-invalid", "", &files);
    assert!(reported.contains("std::env::variable"), "{reported}");
}
