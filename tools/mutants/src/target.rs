//! The parts of the code that are mutated, and the fast tests that must fail.

use super::statements::Dialect;

/// A part of the code, and its tests.
pub(super) struct Target {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// The package that is mutated.
    pub(super) package: &'static str,
    /// Its files, as patterns.
    pub(super) files: &'static [&'static str],
    /// The packages whose tests are run.
    pub(super) tested_by: &'static [&'static str],
    /// The arguments of cargo that select the tests to build.
    pub(super) built: &'static [&'static str],
    /// The arguments of every test program.
    pub(super) flags: &'static [&'static str],
    /// The filters of the tests; empty for all tests. Tests that fail fast come first, because a mutant can make a test wait
    /// until its limit.
    pub(super) rounds: &'static [&'static [&'static str]],
    /// The mutants change the SQL of this store, not Rust code.
    pub(super) sql: Option<Dialect>,
    /// Environment variables that shorten the tests.
    pub(super) settings: &'static [(&'static str, &'static str)],
}

impl Target {
    /// The folder of the package that is mutated.
    pub(super) fn folder(&self) -> String {
        Self::folder_of(self.package)
    }

    pub(super) fn folder_of(package: &str) -> String {
        format!("crates/{}", package.trim_start_matches("outlast-"))
    }

    /// All tests, in the words of `cargo test`.
    pub(super) fn tests(&self) -> impl Iterator<Item = &'static str> {
        self.flags.iter().chain(self.rounds.iter().copied().flatten()).copied()
    }
}

const SQLITE_FLAGS: &[&str] =
    &["--test-threads=4", "--skip=waiting::others::work", "--skip=waiting::others::the_work"];
/// Without tests that start processes, tests of files that are no stores, and tests that fail on a busy machine: such a
/// failure would count as a caught mutant.
const SQLITE_ROUNDS: &[&[&str]] = &[
    &["writer::tests::", "wal_prealloc::tests::", "commit::tests::", "sql_tests::", "model::", "tokens::"],
    &["inline::"],
    &["waiting::", "bad_input::", "damage::", "mailbox::"],
];
const SQLITE_SETTINGS: &[(&str, &str)] = &[("OUTLAST_MODEL_CASES", "40"), ("OUTLAST_MODEL_SHRINKS", "0")];

const POSTGRES_BUILT: &[&str] = &["--lib", "--test", "it", "--all-features"];
/// Without the exhaustive model and tests that crash the server.
const POSTGRES_FLAGS: &[&str] =
    &["--test-threads=4", "--skip=parked::model", "--skip=failover::", "--skip=silence::"];
const POSTGRES_SETTINGS: &[(&str, &str)] = &[("OUTLAST_MODEL_CASES", "20"), ("OUTLAST_MODEL_SHRINKS", "0")];
/// A change of a statement is seen by few sequences, or by the tests of the other rounds.
const POSTGRES_SQL_SETTINGS: &[(&str, &str)] =
    &[("OUTLAST_MODEL_CASES", "8"), ("OUTLAST_MODEL_SHRINKS", "0")];

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "provider-kit",
        about: "decisions that every store makes alike",
        package: "outlast-provider-kit",
        files: &["crates/provider-kit/src/**"],
        tested_by: &["outlast-provider-kit"],
        built: &["--lib"],
        flags: &[],
        rounds: &[],
        sql: None,
        settings: &[],
    },
    Target {
        name: "engine",
        about: "replay and turns",
        package: "outlast-engine",
        files: &["crates/engine/src/**"],
        tested_by: &["outlast-engine"],
        built: &["--tests", "--all-features"],
        // Without tests that measure time.
        flags: &["--skip=cost::"],
        rounds: &[],
        sql: None,
        settings: &[("OUTLAST_ENGINE_CASES", "24"), ("OUTLAST_ENGINE_SHRINKS", "0")],
    },
    Target {
        name: "sqlite",
        about: "the SQLite store",
        package: "outlast-sqlite",
        files: &["crates/sqlite/src/**"],
        tested_by: &["outlast-sqlite"],
        built: &["--lib", "--test", "it"],
        flags: SQLITE_FLAGS,
        rounds: SQLITE_ROUNDS,
        sql: None,
        settings: SQLITE_SETTINGS,
    },
    Target {
        name: "statements",
        about: "the conditions in the statements of the SQLite store",
        package: "outlast-sqlite",
        files: &[],
        tested_by: &["outlast-sqlite"],
        built: &["--lib", "--test", "it"],
        flags: SQLITE_FLAGS,
        rounds: SQLITE_ROUNDS,
        sql: Some(Dialect::Sqlite),
        settings: SQLITE_SETTINGS,
    },
    Target {
        name: "memory",
        about: "the commit paths of the specification",
        package: "outlast-memory",
        files: &[
            "crates/memory/src/ahead.rs",
            "crates/memory/src/commit.rs",
            "crates/memory/src/fetch.rs",
            "crates/memory/src/activity.rs",
            "crates/memory/src/queue.rs",
            "crates/memory/src/rules/activity.rs",
            "crates/memory/src/rules/commit.rs",
            "crates/memory/src/rules/fetch.rs",
            "crates/memory/src/rules/lease.rs",
            "crates/memory/src/session.rs",
            "crates/memory/src/state.rs",
        ],
        // The tests of the memory store are in the packages that compare stores with it.
        tested_by: &["outlast-conformance", "outlast-sqlite"],
        built: &["--tests"],
        flags: &[],
        // A mutant that only a defect can show is caught by the tests of the defects.
        rounds: &[&["memory::", "edges::"], &["model::"], &["defects::"]],
        sql: None,
        settings: SQLITE_SETTINGS,
    },
    Target {
        name: "runtime",
        about: "dispatchers, registries, client",
        package: "outlast-runtime",
        files: &["crates/runtime/src/**"],
        // Tested by programs that use the crate too: tests of the stores, and the simulator with its faults.
        tested_by: &["outlast-runtime", "outlast", "outlast-sim"],
        built: &["--lib", "--test", "it", "--all-features"],
        flags: &["--test-threads=4", "--skip=processes::", "--skip=performance::", "--skip=needs_postgres::"],
        rounds: &[
            &["::tests::", "activities::", "child_start::", "client::", "fused::", "holds::", "options::"],
            &["codec::", "diagnosis::", "local_waits::", "logging::", "metrics::", "nodes::", "registry::"],
            &["resets::", "retention::", "successor::", "undecodable::", "weakness::", "shutdown::"],
            &["worlds_without_a_defect_pass", "scripts_pass_with_any_single_fault"],
            &["bad_input::", "scenario::", "author::"],
        ],
        sql: None,
        settings: &[("OUTLAST_SIM_WORLDS", "200")],
    },
    Target {
        name: "model",
        about: "events, work items, errors and limits",
        package: "outlast-model",
        files: &["crates/model/src/**"],
        tested_by: &["outlast-model", "outlast-engine"],
        built: &["--tests", "--all-features"],
        flags: &["--skip=cost::"],
        rounds: &[],
        sql: None,
        settings: &[("OUTLAST_ENGINE_CASES", "24"), ("OUTLAST_ENGINE_SHRINKS", "0")],
    },
    Target {
        name: "provider",
        about: "the types and defaults of the contract",
        package: "outlast-provider",
        files: &["crates/provider/src/**"],
        tested_by: &["outlast-provider", "outlast-provider-kit", "outlast-conformance"],
        built: &["--tests", "--all-features"],
        flags: &[],
        rounds: &[&["tests::"], &["memory::", "edges::"]],
        sql: None,
        settings: &[],
    },
    Target {
        name: "postgres",
        about: "the PostgreSQL store; needs a server: `cargo xtask postgres -- cargo xtask mutants --target postgres`",
        package: "outlast-postgres",
        files: &["crates/postgres/src/**"],
        tested_by: &["outlast-postgres"],
        built: POSTGRES_BUILT,
        flags: POSTGRES_FLAGS,
        rounds: &[
            &["::tests::", "alone::", "cold::", "eager::", "fused::", "hand_off::", "interleaving::"],
            &["in_doubt::", "large::", "lookups::", "opening::", "takeover::"],
            &["contract::"],
        ],
        sql: None,
        settings: POSTGRES_SETTINGS,
    },
    Target {
        name: "postgres-sql",
        about: "the statements and functions of the PostgreSQL store; needs a server as well",
        package: "outlast-postgres",
        files: &[],
        tested_by: &["outlast-postgres"],
        built: POSTGRES_BUILT,
        flags: POSTGRES_FLAGS,
        rounds: &[
            &["model::"],
            &[
                "alone::",
                "eager::",
                "fused::",
                "hand_off::",
                "interleaving::",
                "large::",
                "line::",
                "retention::",
                "takeover::",
            ],
            &["cold::", "forwarding::", "in_doubt::", "listening::", "lookups::", "opening::", "room::"],
            &["contract::"],
        ],
        sql: Some(Dialect::Postgres),
        settings: POSTGRES_SQL_SETTINGS,
    },
    Target {
        name: "cosmos",
        about: "the Cosmos DB store",
        package: "outlast-cosmos",
        files: &["crates/cosmos/src/**"],
        tested_by: &["outlast-cosmos"],
        built: &["--lib", "--test", "it", "--all-features"],
        flags: &["--test-threads=4"],
        rounds: &[
            &["::tests::", "model::"],
            &["deleting::", "doubt::", "fences::", "outbox::", "staging::"],
            &["contract::", "opening::", "fleet::"],
        ],
        sql: None,
        settings: &[("OUTLAST_MODEL_CASES", "20"), ("OUTLAST_MODEL_SHRINKS", "0")],
    },
];
