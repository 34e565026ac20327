//! The command on PostgreSQL servers in states that a server of other tests must not have.

use crate::support::{outlast, run, said};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// A message of the server: a tag, the length, and the body.
fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[tag][..], &length.to_be_bytes(), body].concat()
}

/// Accepts a login as PostgreSQL of this version does, and hangs up when the client leaves or sends a statement.
fn accept_login(mut connection: TcpStream, version: &str) -> std::io::Result<()> {
    let mut length = [0; 4];
    connection.read_exact(&mut length)?;
    let mut startup = vec![0; u32::from_be_bytes(length) as usize - length.len()];
    connection.read_exact(&mut startup)?;
    let announced = [&b"server_version\0"[..], version.as_bytes(), b"\0"].concat();
    let greeting =
        [message(b'R', &[0; 4]), message(b'S', &announced), message(b'K', &[0; 8]), message(b'Z', b"I")];
    connection.write_all(&greeting.concat())?;
    connection.read(&mut [0]).map(drop)
}

/// A server that announces an old version. No package of a system that runs the tests has so old a server. The store reads the version
/// from the greeting, before its first statement, so the greeting is all that the fake needs.
fn old_server(version: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // The thread ends with the test program.
    std::thread::Builder::new()
        .spawn(move || {
            for connection in listener.incoming().flatten() {
                // The client may leave during the login.
                let _ = accept_login(connection, version);
            }
        })
        .unwrap();
    port
}

#[test]
fn server_that_is_too_old_is_named_with_the_version_that_the_store_needs() {
    for version in ["9.6.24", "12.22 (Debian 12.22-1.pgdg120+1)"] {
        let port = old_server(version);
        let url = format!("postgres://ada@127.0.0.1:{port}/shop?sslmode=disable");
        let expected = format!("error: the server is PostgreSQL {version}: the store needs 13 or later\n");
        for args in [&["doctor"][..], &["instance", "list"], &["migrate", "--create"]] {
            let error = run(args.iter().copied().chain(["--store", &url])).failed();
            assert_eq!(error, expected, "{args:?}");
        }
    }
}

#[cfg(unix)]
mod needs_postgres {
    use super::*;
    use crate::postgres::needs_postgres::examined;
    use crate::program::Program;
    use crate::support::Said;
    use outlast::providers::postgres::PostgresProvider;
    use outlast_toolkit::postgres::{Cluster, Options};
    use std::sync::Arc;

    fn options(settings: &[(&'static str, &'static str)]) -> Options {
        Options { tls: false, settings: settings.to_vec(), ..Options::default() }
    }

    async fn fill(url: &str) {
        let store = PostgresProvider::new_with_schema(url, None).await.unwrap();
        Program::on(Arc::new(store)).await.fill_and_stop().await;
    }

    fn ask(url: &str, args: &[&str]) -> Said {
        said(outlast(args).env("OUTLAST_STORE", url).output().unwrap())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn doctor_finds_each_setting_of_a_server_that_may_lose_commits() {
        let off = [("fsync", "off"), ("full_page_writes", "off"), ("synchronous_commit", "off")];
        let server = Cluster::start(&options(&off)).unwrap();
        let url = server.url("postgres");
        drop(PostgresProvider::new_with_schema(&url, None).await.unwrap());
        let (_, found) = examined(&url, "public");
        // The exit status is checked by `examined`.
        let expected = [
            "fsync is off: a crash of the server's machine may damage the database",
            "full_page_writes is off: a crash of the server's machine may damage the database",
            "synchronous_commit is off: a crash of the server may lose acknowledged starts and turns",
        ];
        assert_eq!(found, expected.map(|sentence| ("settings".to_string(), sentence.to_string())));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn standby_answers_reading_commands_and_refuses_the_others_with_the_reason() {
        let primary = Cluster::start(&options(&[])).unwrap();
        fill(&primary.url("postgres")).await;
        let standby = primary.standby(&options(&[])).unwrap();
        let url = standby.url("postgres");

        let (_, found) = examined(&url, "public");
        let [(check, sentence)] = found.as_slice() else { panic!("one finding: {found:?}") };
        assert!(
            check == "server" && sentence.starts_with("the server is a standby, which takes no writes: ")
        );
        assert!(sentence.contains("so name it, or all servers, in --store"), "{sentence}");

        let listed = ask(&url, &["instance", "list", "-o", "json"]).json();
        assert_eq!(listed["instances"].as_array().unwrap().len(), 6, "{listed}");
        for reads in [
            &["instance", "show", "parked-1"][..],
            &["instance", "why", "parked-1"],
            &["instance", "history", "parked-1"],
            &["audit", "list"],
            &["node", "list"],
            &["dead-letter", "list"],
            &["queue", "depths"],
            &["metrics", "--prometheus"],
            &["migrate", "--check"],
        ] {
            ask(&url, reads).fine();
        }
        for writes in [
            &["instance", "start", "Leaf", "new-1"][..],
            &["instance", "signal", "parked-1", "go", "DATA"],
            &["instance", "cancel", "parked-1"],
            &["instance", "pause", "parked-1", "--reason", "a look"],
            &["instance", "delete", "hello-1"],
            &["migrate", "--create", "--schema", "other"],
            &["stress", "--seconds", "1"],
        ] {
            let refused = ask(&url, writes);
            assert_eq!(refused.code, Some(7), "{writes:?}: {refused:?}");
            let (_, reason) = refused.err.split_once("the server is read-only: cannot ").expect(&refused.err);
            let (reason, advice) = reason.split_once("; ").unwrap();
            assert!(reason.contains("read-only") || reason.contains("during recovery"), "{refused:?}");
            assert_eq!(advice, "if it is a standby, name the primary or all servers in the URL\n");
        }

        // The advice: with all servers in the URL, the command finds the primary.
        let (_, first) = url.rsplit_once('@').unwrap();
        let of_primary = primary.url("postgres");
        let (login, second) = of_primary.rsplit_once('@').unwrap();
        let both = format!("{login}@{},{second}", first.trim_end_matches("/postgres"));
        assert_eq!(examined(&both, "public").1, []);
        ask(&both, &["instance", "cancel", "parked-1"]).fine();
    }
}
