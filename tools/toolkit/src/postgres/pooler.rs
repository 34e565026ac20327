//! A PgBouncer in front of the server. It assigns a connection to a client for one transaction at a time, so a store
//! behind it must not depend on the state of a session.

use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::cluster::{HOST, USER, free_port};
use super::server_user::ServerUser;

/// The shell stops PgBouncer when its stdin ends. The system closes stdin when the tool ends for any reason.
const RUN: &str = r#"pgbouncer --quiet "$1" & trap '' HUP INT TERM; cat > /dev/null; kill "$!"; wait "$!""#;

/// The number of attempts to connect to a new PgBouncer, and the pause between two attempts.
const TRIES: usize = 500;
const PAUSE: Duration = Duration::from_millis(20);

/// The first version that keeps prepared statements for its clients.
const KEEPS_STATEMENTS: (u32, u32) = (1, 21);

pub(super) struct Pooler {
    pub(super) port: u16,
    /// A client can use a prepared statement in later transactions.
    pub(super) keeps_statements: bool,
    process: Child,
}

impl Pooler {
    /// Starts a PgBouncer for the server on this port. It has fewer connections than clients, so that a client gets
    /// different connections for its transactions.
    #[allow(clippy::disallowed_methods, reason = "PgBouncer does not report when it listens")]
    pub(super) fn start(
        user: ServerUser,
        folder: &Path,
        server: u16,
        password: &str,
    ) -> Result<Self, String> {
        let port = free_port().map_err(|error| format!("no port of the loopback is free: {error}"))?;
        let file = folder.join("pgbouncer.ini");
        let keeps_statements = version().is_some_and(|version| version >= KEEPS_STATEMENTS);
        let mut text = configuration(port, server, password, folder);
        if keeps_statements {
            text.push_str("max_prepared_statements = 200\n");
        }
        user.write(&file, &text)?;
        let mut shell = user.command("sh");
        shell.args(["-c", RUN, "pooler"]).arg(&file).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = shell.spawn().map_err(|error| format!("`sh` could not be run: {error}"))?;
        let pooler = Self { port, keeps_statements, process };
        for _ in 0..TRIES {
            if TcpStream::connect((HOST, port)).is_ok() {
                return Ok(pooler);
            }
            std::thread::sleep(PAUSE);
        }
        let log = std::fs::read_to_string(folder.join("pgbouncer.log")).unwrap_or_default();
        let advice = "install the package `pgbouncer`, so that it is in the path";
        Err(format!("PgBouncer does not start: {advice}\n{}", log.trim_end()))
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        if let Err(error) = self.process.wait() {
            eprintln!("PgBouncer may still be running: {error}");
        }
    }
}

fn version() -> Option<(u32, u32)> {
    let output = Command::new("pgbouncer").arg("--version").output().ok()?;
    read_version(&String::from_utf8_lossy(&output.stdout))
}

/// Reads the first line of the output, for example "PgBouncer 1.24.1".
fn read_version(output: &str) -> Option<(u32, u32)> {
    let mut numbers = output.lines().next()?.split(' ').nth(1)?.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn configuration(port: u16, server: u16, password: &str, folder: &Path) -> String {
    let log = folder.join("pgbouncer.log");
    format!(
        "[databases]\n\
         * = host={HOST} port={server} user={USER} password={password}\n\
         [pgbouncer]\n\
         listen_addr = {HOST}\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = any\n\
         pool_mode = transaction\n\
         max_client_conn = 1000\n\
         default_pool_size = 8\n\
         logfile = {}\n",
        log.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_two_numbers() {
        assert_eq!(read_version("PgBouncer 1.24.1\nlibevent 2.1.12-stable\n"), Some((1, 24)));
        assert_eq!(read_version("sh: pgbouncer: not found"), None);
        assert_eq!(read_version(""), None);
    }

    #[test]
    fn transactions_are_pooled() {
        let text = configuration(6432, 5433, "s", Path::new("/x"));
        for line in ["* = host=127.0.0.1 port=5433 user=postgres password=s", "pool_mode = transaction"] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}
