//! Instances with more messages than fit into memory.

use std::process::Command;

/// 1,000 messages of 2 MiB for two instances, in a separate process with at most 256 MiB: one instance reads all its messages and
/// fails for its limit, and its other messages are drained; one continues as new and completes; 200 ordinary instances beside them
/// complete. Other tests run at the same time, so only the command checks how long ordinary instances take; the tests `large` of
/// the SQLite store show that small requests do not wait behind large ones.
#[test]
fn a_flood_of_large_messages_needs_little_memory() {
    let output = Command::new(env!("CARGO_BIN_EXE_outlast-chaos"))
        .args(["flood", "sqlite", "--messages", "500", "--most-memory", "256", "--ignore-latency"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}
