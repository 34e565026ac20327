//! `outlast top`.

use crate::program::Program;
use crate::support::{damage, run};
use crate::terminal::Terminal;
use outlast::providers::sqlite::SqliteProvider;

/// The sequences that show and leave the screen.
const SHOW: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";

#[tokio::test(flavor = "multi_thread")]
async fn screen_shows_the_store_until_q() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let program = Program::start(&path).await;
    program.run("broken-1", "Broken").await;
    program.park("parked-1", "1.0.0").await;
    let args = ["top", "--store", path.to_str().unwrap(), "--every", "250ms"];
    let mut terminal = Terminal::start(&args, 24, 100);
    // The screen is drawn without its spaces, so the test waits for words.
    for word in ["Instances", "Completed", "Queues", "activities", "parked-1", "Parked", "'go'", "ends"] {
        terminal.wait_for(word);
    }
    terminal.press(b"q");
    let (code, text) = terminal.end();
    assert_eq!(code, Some(0), "{text:?}");
    assert!(text.contains(SHOW), "{text:?}");
    let after = text.rsplit(LEAVE).next().unwrap();
    assert!(text.contains(LEAVE) && !after.contains("error"), "the terminal is as before: {after:?}");
    program.runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_the_screen_with_130() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let store = path.to_str().unwrap();
    drop(SqliteProvider::new(&format!("sqlite:{store}"), None).await.unwrap());
    let mut terminal = Terminal::start(&["top", "--store", store], 14, 70);
    terminal.wait_for("runs.");
    terminal.press(b"\x03");
    let (code, text) = terminal.end();
    assert!(code == Some(130) && text.contains(LEAVE), "{code:?} {text:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_or_store_that_cannot_be_used_is_an_error_before_the_screen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let store = path.to_str().unwrap();
    drop(SqliteProvider::new(&format!("sqlite:{store}"), None).await.unwrap());
    let none = run(["top", "--store", store]).failed();
    assert!(none.contains("needs a terminal") && none.contains("`outlast metrics`"), "{none}");
    let (code, text) = Terminal::start(&["top", "--store", store], 10, 60).end();
    assert_eq!(
        (code, text.as_str()),
        (Some(1), "error: the terminal has 60 columns and 10 rows: outlast top needs at least 70 and 14\n")
    );
    damage(&path, "INSERT INTO outlast_migrations VALUES (99, 'later', 'x', 99, 0)");
    let away = "postgres://me@127.0.0.1:1/db?sslmode=disable";
    for (store, expected) in [(store, 7), (away, 7), ("/nowhere/at/all.db", 1)] {
        let (code, text) = Terminal::start(&["top", "--store", store], 24, 80).end();
        assert!(code == Some(expected) && !text.contains(SHOW), "{store}: {code:?} {text:?}");
    }
    assert_eq!(run(["top", "--store", store, "--every", "1ms"]).code, Some(2));
}
