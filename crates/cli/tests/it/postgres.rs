//! The command on PostgreSQL.

pub(crate) mod needs_postgres {
    use crate::check;
    use crate::migrate::{check_report, ends_correctly};
    use crate::program::{LONG, Program};
    use crate::support::{Said, outlast, run, said};
    use crate::transfer::{instances, text};
    use outlast::providers::postgres::PostgresProvider;
    use outlast::providers::{Entropy, OsEntropy};
    use outlast::runtime::OrchestrationStatus;
    use std::sync::Arc;
    use tokio_postgres::NoTls;

    fn server_url() -> String {
        std::env::var("OUTLAST_TEST_POSTGRES_URL").expect(
            "OUTLAST_TEST_POSTGRES_URL names no server: `cargo xtask postgres -- cargo test -p outlast-cli` has one",
        )
    }

    fn fresh(what: &str) -> String {
        format!("{what}_{:016x}", OsEntropy.next_u128() as u64)
    }

    /// The server's URL for another role.
    fn url_as(role: &str, password: Option<&str>) -> String {
        let url = server_url();
        let (_, place) = url.rsplit_once('@').unwrap();
        let password = password.map_or(String::new(), |password| format!(":{password}"));
        format!("postgres://{role}{password}@{place}")
    }

    async fn execute(sql: &str) {
        let (client, connection) = tokio_postgres::connect(&server_url(), NoTls).await.unwrap();
        let driven = tokio::spawn(connection);
        client.batch_execute(sql).await.unwrap();
        drop(client);
        driven.await.unwrap().unwrap();
    }

    async fn program(schema: &str) -> Program {
        let store = PostgresProvider::new_with_schema(&server_url(), Some(schema)).await.unwrap();
        Program::on(Arc::new(store)).await
    }

    fn ask(url: &str, schema: &str, args: &[&str]) -> Said {
        let store = ["--schema", schema];
        said(
            outlast(["instance"].iter().chain(args).chain(&store))
                .env("OUTLAST_STORE", url)
                .output()
                .unwrap(),
        )
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn every_subcommand_works_on_postgres() {
        let (url, schema) = (server_url(), fresh("cli"));
        program(&schema).await.fill_and_stop().await;
        let listed = ask(&url, &schema, &["list", "--status", "Running", "-o", "json"]).json();
        assert_eq!(listed["instances"][0]["instance"], "parked-1");
        let shown = ask(&url, &schema, &["show", "hello-1", "-o", "json"]).json();
        assert_eq!((&shown["status"], &shown["kv"]["colour"]), (&"Completed".into(), &"blue".into()));
        assert!(ask(&url, &schema, &["history", "hello-1"]).fine().contains("OrchestrationCompleted"));
        let whole = |args: &[&str]| {
            let mut command = outlast(args);
            said(command.args(["--schema", &schema]).env("OUTLAST_STORE", &url).output().unwrap())
        };
        let checked = whole(&["doctor"]).fine();
        assert!(
            checked.contains("ok       clocks") && checked.contains("No findings in schema"),
            "{checked}"
        );
        assert_eq!(whole(&["doctor", "--fix"]).code, Some(2), "only SQLite files have orphans");
        assert!(whole(&["queue", "depths"]).fine().contains("activities  0"));
        let counts = ask(&url, &schema, &["count", "-o", "json"]).json();
        assert_eq!((&counts["total"], &counts["failed"]), (&6.into(), &1.into()), "{counts}");
        assert!(ask(&url, &schema, &["tree", "hello-1"]).fine().contains("\n  hello-1::"));
        assert_eq!(ask(&url, &schema, &["kv", "hello-1", "colour"]).fine(), "blue\n");
        let stats = ask(&url, &schema, &["stats", "hello-1", "-o", "json"]).json();
        assert!(stats["events"].as_u64() > Some(5) && stats["keys"] == 1, "{stats}");
        let started = ask(&url, &schema, &["start", "Leaf", "new-1", "--delay", "1h", "-o", "json"]).json();
        assert_eq!(started["started"], true, "{started}");
        let again = ask(&url, &schema, &["start", "Leaf", "new-1"]);
        assert!(again.code == Some(6) && again.err.contains("(not run yet)"), "{again:?}");
        let peeked = whole(&["queue", "peek", "turns", "-o", "json"]).json();
        assert_eq!(peeked["items"][0]["instance"], "new-1", "{peeked}");
        assert!(whole(&["execution", "list", "hello-1"]).fine().contains("Completed"));
        assert!(whole(&["execution", "prune", "hello-1", "--keep", "1"]).fine().starts_with("No execution"));
        assert!(whole(&["audit", "list"]).fine().contains("instance.start"));
        let metrics = whole(&["metrics", "--prometheus"]).fine();
        assert!(
            metrics.contains("outlast_queue_messages{queue=\"orchestrator\",state=\"delayed\"} 1\n"),
            "{metrics}"
        );
        assert!(ask(&url, &schema, &["wait", "hello-1"]).fine().contains("'hello-1' completed"));
        ask(&url, &schema, &["cancel", "parked-1", "--reason", "enough"]).fine();
        let program = program(&schema).await;
        let ended = program.client.wait_for_orchestration("parked-1", LONG).await.unwrap();
        assert!(matches!(ended, OrchestrationStatus::Failed { .. }), "{ended:?}");
        let said = ask(&url, &schema, &["show", "nobody"]).not_found();
        let (_, secret) =
            url.split_once("://").unwrap().1.split_once('@').unwrap().0.split_once(':').unwrap();
        assert!(said.contains(&format!("in schema '{schema}' of postgres://...@")), "{said}");
        assert!(!said.contains(secret), "{said}");
        program.runtime.shutdown(None).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn show_lists_the_waits_of_an_instance_on_postgres() {
        let schema = fresh("cli");
        let store = Arc::new(PostgresProvider::new_with_schema(&server_url(), Some(&schema)).await.unwrap());
        let store_args = ["--store".to_string(), server_url(), "--schema".to_string(), schema];
        crate::waiting::is_shown(store, &store_args).await;
    }

    #[cfg(unix)]
    #[tokio::test(flavor = "multi_thread")]
    async fn followed_history_has_each_event_once_on_postgres() {
        let schema = fresh("cli");
        let store = Arc::new(PostgresProvider::new_with_schema(&server_url(), Some(&schema)).await.unwrap());
        let store_args = ["--store".to_string(), server_url(), "--schema".to_string(), schema];
        crate::follow::prints_each_event_once(store, &store_args).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn migrate_creates_a_schema_and_refuses_a_newer_one() {
        let (url, schema) = (server_url(), fresh("migrate"));
        let migrate = |more: &[&str]| {
            let args = ["migrate", "--schema", &schema];
            said(outlast(args.iter().chain(more)).env("OUTLAST_STORE", &url).output().unwrap())
        };
        let behind = migrate(&["--check"]);
        assert_eq!((behind.code, behind.err.as_str()), (Some(1), ""), "{behind:?}");
        assert!(
            behind.out.contains("has schema version 0, this release has")
                && behind.out.contains("\n  1 initial\n")
        );
        let refused = migrate(&[]).failed();
        assert!(refused.contains("there is no store in schema") && refused.contains("--create"), "{refused}");
        let created = migrate(&["--create"]).fine();
        assert!(created.starts_with(&format!("Created schema '{schema}' of postgres://...@")), "{created}");
        let current = migrate(&["--check", "-o", "json"]).json();
        assert!(
            current["before"] == current["known"] && current["migrations"] == serde_json::json!([]),
            "{current}"
        );
        assert!(migrate(&[]).fine().contains("which is that of this release"));
        execute(&format!(
            "INSERT INTO {schema}.outlast_migrations (version, name, checksum, usable_from) VALUES (99, 'later', 'x', 99)"
        ))
        .await;
        let newer = migrate(&["--check"]);
        assert!(newer.code == Some(7) && newer.err.contains("use a newer release"), "{newer:?}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn reading_subcommands_need_only_the_right_to_read() {
        let (schema, role) = (fresh("cli"), fresh("reader"));
        program(&schema).await.fill_and_stop().await;
        execute(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'r3ader'; GRANT USAGE ON SCHEMA {schema} TO {role};
             GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"
        ))
        .await;
        let url = url_as(&role, Some("r3ader"));
        assert_eq!(
            ask(&url, &schema, &["list", "-o", "json"]).json()["instances"].as_array().unwrap().len(),
            6
        );
        for verb in ["show", "history", "why", "timeline"] {
            ask(&url, &schema, &[verb, "parked-1"]).fine();
        }
        let error = ask(&url, &schema, &["cancel", "parked-1"]).failed();
        assert!(error.contains("lacks a right") && !error.contains("r3ader"), "{error}");
    }

    /// The report of `outlast doctor`, and the sentences of its findings by check.
    pub(crate) fn examined(url: &str, schema: &str) -> (serde_json::Value, Vec<(String, String)>) {
        let mut command = outlast(["doctor", "-o", "json", "--schema", schema]);
        let said = said(command.env("OUTLAST_STORE", url).output().unwrap());
        assert_eq!(said.err, "", "{said:?}");
        let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let mut found = Vec::new();
        for check in report["checks"].as_array().unwrap() {
            for finding in check["findings"].as_array().unwrap() {
                let text = |value: &serde_json::Value| value.as_str().unwrap().to_string();
                found.push((text(&check["check"]), text(&finding["sentence"])));
            }
        }
        assert_eq!(said.code, Some(i32::from(!found.is_empty())), "{report}");
        (report, found)
    }

    /// A role with these rights on the schema, as the URL of a login.
    async fn role_with(schema: &str, grants: &str) -> (String, String) {
        let role = fresh("doctor");
        execute(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'd0ctor'; GRANT USAGE ON SCHEMA {schema} TO {role};
             GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"
        ))
        .await;
        execute(&grants.replace("ROLE_", &role)).await;
        (url_as(&role, Some("d0ctor")), role)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn doctor_reads_version_settings_and_connections_of_the_server() {
        let schema = fresh("cli");
        program(&schema).await.fill_and_stop().await;
        let (report, found) = examined(&server_url(), &schema);
        assert_eq!(found, []);
        let says = |name: &str| {
            let checks = report["checks"].as_array().unwrap();
            let check =
                checks.iter().find(|check| check["check"] == name).unwrap_or(&serde_json::Value::Null);
            check["says"].as_str().unwrap_or_default().to_string()
        };
        assert!(says("server").starts_with("is PostgreSQL 1"), "{report}");
        assert_eq!(says("settings"), "fsync and full_page_writes are on, synchronous_commit is on");
        assert!(says("connections").contains(" are in use"), "{report}");
        assert_eq!(says("rights"), "this role may read and change the tables");
        assert_eq!(says("schema"), "is the one of this command");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn doctor_finds_commits_that_a_role_does_not_wait_for_and_missing_rights() {
        let schema = fresh("cli");
        program(&schema).await.fill_and_stop().await;
        let (reader, role) = role_with(&schema, "SELECT 1").await;
        let (report, found) = examined(&reader, &schema);
        assert_eq!(found, [], "a role that only reads suffices: {report}");
        assert!(report.to_string().contains("this role may only read the tables"), "{report}");
        execute(&format!("ALTER ROLE {role} SET synchronous_commit = off")).await;
        let (_, found) = examined(&reader, &schema);
        let [(check, sentence)] = found.as_slice() else { panic!("one finding: {found:?}") };
        assert!(check == "settings" && sentence.contains("synchronous_commit is off"), "{found:?}");

        let some = format!("GRANT INSERT, UPDATE, DELETE ON {schema}.instances, {schema}.history TO ROLE_");
        let (partial, _) = role_with(&schema, &some).await;
        let (_, found) = examined(&partial, &schema);
        let [(check, sentence)] = found.as_slice() else { panic!("one finding: {found:?}") };
        assert!(check == "rights" && sentence.contains("may change 2 tables and not "), "{found:?}");
        assert!(sentence.contains("worker_queue") && !sentence.contains(" history"), "{sentence}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn doctor_finds_a_server_whose_clock_differs() {
        let schema = fresh("cli");
        program(&schema).await.fill_and_stop().await;
        execute(&format!(
            "CREATE OR REPLACE FUNCTION {schema}.now_ms() RETURNS bigint LANGUAGE sql AS
             $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + 3600000 $$"
        ))
        .await;
        let (_, found) = examined(&server_url(), &schema);
        let [(check, sentence)] = found.as_slice() else { panic!("one finding: {found:?}") };
        // Seconds may pass between the two clocks.
        let differs = ["differs by 1h", "differs by 59m"].iter().any(|part| sentence.contains(part));
        assert!(check == "clocks" && differs, "{found:?}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn doctor_of_a_newer_schema_names_the_newer_release() {
        let (url, schema) = (server_url(), fresh("cli"));
        program(&schema).await.fill_and_stop().await;
        execute(&format!(
            "INSERT INTO {schema}.outlast_migrations (version, name, checksum, usable_from) VALUES (99, 'later', 'x', 99)"
        ))
        .await;
        let newer =
            said(outlast(["doctor", "--schema", &schema]).env("OUTLAST_STORE", &url).output().unwrap());
        assert!(newer.code == Some(7) && newer.err.contains("use a newer release"), "{newer:?}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn no_subcommand_creates_or_migrates_a_schema() {
        let (url, schema) = (server_url(), fresh("cli"));
        for args in [&["list"][..], &["show", "x"], &["history", "x"], &["cancel", "x"]] {
            let error = ask(&url, &schema, args).failed();
            let expected = format!("cannot use schema '{schema}': it holds no Outlast store");
            assert!(error.contains(&expected), "{error}");
        }
        // This would fail if one of the commands had created the schema.
        execute(&format!("CREATE SCHEMA {schema}")).await;
        drop(PostgresProvider::new_with_schema(&url, Some(&schema)).await.unwrap());
        let later = [("OUTLAST_TEST_MIGRATION", "CREATE TABLE {schema}.added (x integer)")];
        for args in [&["list"][..], &["cancel", "x"]] {
            let mut command = outlast(["instance"].iter().chain(args).chain(&["--schema", &schema]));
            let older = said(command.env("OUTLAST_STORE", &url).envs(later).output().unwrap());
            let part = "has schema version 1, this release needs 2";
            assert!(older.code == Some(1) && older.err.contains(part), "{older:?}");
        }
        let mut command = outlast(["migrate", "--schema", &schema]);
        let migrated = said(command.env("OUTLAST_STORE", &url).envs(later).output().unwrap()).fine();
        assert!(
            migrated.contains("schema version 1 before, 2 now. Applied 1 migration.\n  2 next\n"),
            "{migrated}"
        );
        assert_eq!(ask(&url, &schema, &["list"]).fine(), "No instance matches.\n", "a newer schema is used");
        let newer = format!("INSERT INTO {schema}.outlast_migrations VALUES (3, 'later', 'x', 3)");
        execute(&newer).await;
        for args in [&["list"][..], &["cancel", "x"]] {
            let refused = ask(&url, &schema, args);
            // A store of a newer release has an exit status of its own.
            assert!(refused.code == Some(7) && refused.err.contains("use a newer release"), "{refused:?}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn passwords_are_read_from_the_variable_or_the_file() {
        let (schema, role) = (fresh("cli"), fresh("worker"));
        program(&schema).await.fill_and_stop().await;
        execute(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'p:w@rd'; GRANT USAGE ON SCHEMA {schema} TO {role};
             GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"
        ))
        .await;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pgpass");
        std::fs::write(&file, format!("*:*:*:nobody:wrong\n*:*:*:{role}:p\\:w@rd\n")).unwrap();
        let url = url_as(&role, None);
        let list = |variable: &str, value: &std::ffi::OsStr| {
            let args = ["instance", "list", "--store", &url, "--schema", &schema];
            said(outlast(args).env(variable, value).output().unwrap())
        };
        assert!(list("PGPASSWORD", "p:w@rd".as_ref()).fine().contains("parked-1"));
        assert!(list("PGPASSWORD", "wrong".as_ref()).failed().contains("refused the login"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let set = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            set(0o644);
            let error = list("PGPASSFILE", file.as_os_str()).failed();
            assert!(error.contains("can be read by other users") && !error.contains("w@rd"), "{error}");
            set(0o600);
        }
        assert!(list("PGPASSFILE", file.as_os_str()).fine().contains("parked-1"));
        let args = ["instance", "list", "--store", &url, "--schema", &schema];
        assert!(run(args).failed().contains("password"), "without either, the login is refused");
    }

    /// Schemas that stress runs made.
    async fn stress_schemas() -> i64 {
        let (client, connection) = tokio_postgres::connect(&server_url(), NoTls).await.unwrap();
        let driven = tokio::spawn(connection);
        let sql = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'outlast\\_stress\\_%'";
        let count = client.query_one(sql, &[]).await.unwrap().get(0);
        drop(client);
        driven.await.unwrap().unwrap();
        count
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn stress_runs_in_a_fresh_schema_with_each_pool_size() {
        let args = [
            "stress",
            "--preset",
            "baseline,default",
            "--pool-size",
            "2,10,20",
            "--seconds",
            "3",
            "-o",
            "json",
        ];
        let report = said(outlast(args).env("OUTLAST_STORE", server_url()).output().unwrap()).json();
        let runs = report["runs"].as_array().unwrap();
        let pools: Vec<u64> = runs.iter().map(|run| run["pool_size"].as_u64().unwrap()).collect();
        assert_eq!(pools, [2, 2, 10, 10, 20, 20]);
        for run in runs {
            assert!(run["completed"].as_u64() > Some(0) && run["success_percent"] == 100.0, "{run}");
            // The targets of `--check` are for a release build on an idle machine. This bound holds on a busy one too: a
            // worker that finds an activity by its lease, which lasts 30 s, exceeds it.
            assert!(run["ms_per_orchestration"].as_f64() < Some(2_000.0), "{run}");
        }
        assert_eq!(stress_schemas().await, 0, "the schemas are dropped");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn stress_rejects_a_schema_with_instances() {
        let (url, schema) = (server_url(), fresh("cli"));
        program(&schema).await.fill_and_stop().await;
        let error = run(["stress", "--store", &url, "--schema", &schema, "--seconds", "1"]).failed();
        assert!(error.contains(&format!("schema '{schema}' holds instances")), "{error}");
        let listed = ask(&url, &schema, &["list", "-o", "json"]).json();
        assert_eq!(listed["instances"].as_array().unwrap().len(), 6, "nothing was added, nothing is gone");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn programs_are_checked_on_postgres() {
        let (url, schema) = (server_url(), fresh("check"));
        let store = PostgresProvider::new_with_schema(&url, Some(&schema)).await.unwrap();
        check::fill(Arc::new(store), 3).await;
        let check = |version: &str| {
            let mut command = check::command(version, &["--schema", &schema, "-o", "json"]);
            said(command.env("OUTLAST_STORE", &url).output().unwrap())
        };
        let safe = check("patched").json();
        assert_eq!((&safe["checked"], &safe["patches"]["fraud"]["older"]), (&4.into(), &3.into()));
        let broken = check::breaks(check("unpatched"));
        assert!(broken.contains("\"diverging\": 3"), "{broken}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn instances_move_between_sqlite_and_postgres_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let (old, file) = (dir.path().join("old.db"), dir.path().join("all.jsonl"));
        Program::start(&old).await.fill_and_stop().await;
        run(["instance", "export", "--file", text(&file), "--store", text(&old)]).fine();
        let (url, schema) = (server_url(), fresh("moved"));
        let import = ["import", "--file", text(&file), "--create"];
        let said = ask(&url, &schema, &import).fine();
        assert!(said.starts_with("Imported 6 instances (1 unfinished"), "{said}");
        let again = dir.path().join("again.jsonl");
        ask(&url, &schema, &["export", "--file", text(&again)]).fine();
        assert_eq!(instances(&file), instances(&again));
        let program = program(&schema).await;
        program.client.raise_event("parked-1", "go", "went").await.unwrap();
        let ended = program.client.wait_for_orchestration("parked-1", LONG).await.unwrap();
        assert!(
            matches!(&ended, OrchestrationStatus::Completed { output, .. } if output == "went"),
            "{ended:?}"
        );
        program.runtime.shutdown(None).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn unfinished_instances_of_duroxide_pg_end_after_the_migration() {
        let (url, old, new) = (server_url(), fresh("peer"), fresh("migrated"));
        let dump = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/duroxide/postgres-0.1.38.sql");
        let dump = std::fs::read_to_string(dump).unwrap();
        execute(
            &dump.replace("SCHEMA peer;", &format!("SCHEMA {old};")).replace(" peer.", &format!(" {old}.")),
        )
        .await;
        let from =
            ["migrate-from", "duroxide", "--schema", &old, "--to", &url, "--to-schema", &new, "-o", "json"];
        let migrate = |more: &[&str]| {
            said(outlast(from.iter().chain(more)).env("OUTLAST_STORE", &url).output().unwrap())
        };
        check_report(&migrate(&["--create"]).json());
        let store = PostgresProvider::new_with_schema(&url, Some(&new)).await.unwrap();
        ends_correctly(Arc::new(store)).await;
        let again = migrate(&[]);
        assert!(again.code == Some(6) && again.err.contains("exist in the store"), "{again:?}");
        let none = said(
            outlast(["migrate-from", "duroxide", "--schema", &new, "--to", &url, "--to-schema", &new])
                .env("OUTLAST_STORE", &url)
                .output()
                .unwrap(),
        );
        assert!(none.code == Some(6) && none.err.contains("is no store of duroxide-pg"), "{none:?}");
    }
}
