//! Instances with more messages than fit into memory.
//!
//! Messages of 2 MiB for two instances, in a process of its own with bounded memory: one instance reads all its messages and
//! fails for its limit, and its other messages are drained; one continues as new and completes; 200 ordinary instances beside
//! them complete. Other tests run at the same time, so only the command checks how long ordinary instances take; the tests
//! `large` of both stores show that small requests do not wait behind large ones.

use std::process::Command;

fn flood(store: &str, messages: usize, most_memory: usize) {
    let output = Command::new(env!("CARGO_BIN_EXE_outlast-chaos"))
        .args(["flood", store, "--ignore-latency"])
        .args(["--messages", &messages.to_string(), "--most-memory", &most_memory.to_string()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_flood_of_large_messages_needs_little_memory() {
    flood("sqlite", 500, 256);
}

mod needs_postgres {
    use crate::SERVER_LOCK;

    #[tokio::test]
    async fn a_flood_of_large_messages_needs_little_memory() {
        let _lock = SERVER_LOCK.lock().await;
        super::flood("postgres", 100, 256);
    }
}
