//! Checks of a PostgreSQL server: its version, the settings that keep commits, its connections, and the rights of the role.

use super::report::Check;
use crate::failure::Failure;
use outlast::lens::counted;
use outlast::providers::postgres::{PostgresExamination, PostgresProvider};

/// The part of the connections that leaves no room for another process.
const ALMOST_ALL: f64 = 0.9;

pub(super) async fn check(server: &PostgresProvider) -> Result<Vec<Check>, Failure> {
    Ok(checks(&server.examine().await?))
}

fn checks(seen: &PostgresExamination) -> Vec<Check> {
    let schema = Check::fine("schema", "is the one of this command");
    vec![schema, version(seen), settings(seen), connections(seen), rights(seen)]
}

fn version(seen: &PostgresExamination) -> Check {
    let (major, minor) = (seen.server_version / 10_000, seen.server_version % 10_000);
    let mut check = Check::fine("server", format!("is PostgreSQL {major}.{minor}"));
    if seen.is_standby {
        check.found(
            "the server is a standby, which takes no writes: runtimes and commands that change instances need the primary, so name \
             it, or all servers, in --store (postgres://USER@ONE,OTHER/DATABASE)",
        );
    }
    check
}

fn settings(seen: &PostgresExamination) -> Check {
    let PostgresExamination { fsync, full_page_writes, synchronous_commit, .. } = seen;
    let mut check = Check::fine(
        "settings",
        format!("fsync and full_page_writes are on, synchronous_commit is {synchronous_commit}"),
    );
    for (name, is_on) in [("fsync", fsync), ("full_page_writes", full_page_writes)] {
        if !is_on {
            check.found(format!("{name} is off: a crash of the server's machine may damage the database"));
        }
    }
    if synchronous_commit == "off" {
        check
            .found("synchronous_commit is off: a crash of the server may lose acknowledged starts and turns");
    }
    check
}

fn connections(seen: &PostgresExamination) -> Check {
    let PostgresExamination { connections, max_connections, .. } = *seen;
    let mut check = Check::fine("connections", format!("{connections} of {max_connections} are in use"));
    if connections as f64 >= max_connections as f64 * ALMOST_ALL {
        check.found(format!(
            "{connections} of {max_connections} connections of the server are in use: further processes may be refused; lower \
             their pools, or raise max_connections"
        ));
    }
    check
}

/// A role that only reads suffices for the command. A role that may change some of the tables cannot run a runtime.
fn rights(seen: &PostgresExamination) -> Check {
    let only_read = seen.read_only_tables.len();
    let says = match (only_read, seen.writable_tables) {
        (0, _) => "this role may read and change the tables".to_string(),
        _ => "this role may only read the tables".to_string(),
    };
    let mut check = Check::fine("rights", says);
    if only_read > 0 && seen.writable_tables > 0 {
        check.found(format!(
            "this role may change {} and not {}: a runtime with this role fails; grant INSERT, UPDATE and DELETE",
            counted(seen.writable_tables, "table"),
            seen.read_only_tables.join(", ")
        ));
    }
    check
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(change: impl FnOnce(&mut PostgresExamination)) -> Vec<String> {
        let mut seen = PostgresExamination::default();
        seen.server_version = 150_004;
        (seen.fsync, seen.full_page_writes) = (true, true);
        seen.synchronous_commit = "on".to_string();
        (seen.connections, seen.max_connections, seen.writable_tables) = (5, 97, 20);
        change(&mut seen);
        checks(&seen).into_iter().flat_map(|check| check.sentences()).collect()
    }

    #[test]
    fn server_that_keeps_commits_has_no_findings() {
        assert_eq!(seen(|_| {}), [""; 0]);
        assert_eq!(seen(|seen| seen.synchronous_commit = "local".to_string()), [""; 0]);
        let reader = |seen: &mut PostgresExamination| {
            seen.writable_tables = 0;
            seen.read_only_tables = vec!["instances".to_string()];
        };
        assert_eq!(seen(reader), [""; 0], "a role that only reads suffices");
    }

    /// `server_states.rs` of the tests brings most of these facts about, on servers of its own.
    #[test]
    fn each_fact_that_risks_the_store_is_a_finding() {
        type Change = fn(&mut PostgresExamination);
        let cases: [(Change, &str); 5] = [
            (|seen| seen.is_standby = true, "is a standby"),
            (|seen| seen.fsync = false, "fsync is off"),
            (|seen| seen.full_page_writes = false, "full_page_writes is off"),
            (|seen| seen.synchronous_commit = "off".to_string(), "synchronous_commit is off"),
            (|seen| seen.connections = 90, "90 of 97 connections"),
        ];
        for (change, part) in cases {
            let found = seen(change);
            assert!(found.len() == 1 && found[0].contains(part), "{part} in {found:?}");
        }
    }
}
