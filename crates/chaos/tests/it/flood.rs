//! Instances with more messages than fit into memory.

use std::process::Command;

/// 2 x 200 messages of 2 MiB, 800 MiB in all, in a process of its own with at most 256 MiB: one instance reads all of them and fails
/// for its limit, its other messages are drained; one continues as new and completes; 200 ordinary ones beside them complete. Code
/// without optimisation decodes a few megabytes in a second, so the command sends more, and only the command checks how long ordinary
/// instances take.
#[test]
fn a_flood_of_large_messages_needs_little_memory() {
    let output = Command::new(env!("CARGO_BIN_EXE_outlast-chaos"))
        .args(["flood", "sqlite", "--messages", "200", "--most-memory", "256", "--ignore-latency"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}
