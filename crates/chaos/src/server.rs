//! The PostgreSQL server that `cargo xtask` started. A test can stop, start and crash the server.

use std::process::Stdio;
use tokio::process::Command;

/// Environment variables with the URL, the programs and the data folder of the server.
pub const URL: &str = "OUTLAST_TEST_POSTGRES_URL";
const PROGRAMS: &str = "OUTLAST_TEST_POSTGRES_BIN";
const DATA: &str = "OUTLAST_TEST_POSTGRES_DATA";

/// Reads a variable that `cargo xtask` sets.
///
/// # Errors
/// If it is not set.
pub fn variable(name: &str) -> Result<String, String> {
    std::env::var(name)
        .map_err(|_| format!("{name} is not set: `cargo xtask postgres -- COMMAND` starts a server"))
}

/// How to stop the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The server closes its connections with an error message and rolls back their transactions.
    Fast,
    /// The server exits at once, and recovers from its log at the next start.
    Immediate,
}

impl Stop {
    fn mode(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Immediate => "immediate",
        }
    }
}

/// How long a server may take to recover from its log, in seconds: on a busy disk it reads and syncs the files of all databases.
const RECOVERY_S: &str = "600";

/// Stops and starts the server.
#[derive(Debug, Clone)]
pub struct ServerControl {
    programs: String,
    data: String,
}

impl ServerControl {
    /// Finds the server by the environment variables.
    ///
    /// # Errors
    /// If a variable is missing.
    pub fn find() -> Result<Self, String> {
        Ok(Self { programs: variable(PROGRAMS)?, data: variable(DATA)? })
    }

    /// Stops the server.
    ///
    /// # Errors
    /// If the server does not stop.
    pub async fn stop(&self, how: Stop) -> Result<(), String> {
        self.pg_ctl("stop", &["--mode", how.mode()]).await
    }

    /// Starts the stopped server with the same data and port.
    ///
    /// # Errors
    /// If the server does not start.
    pub async fn start(&self) -> Result<(), String> {
        self.pg_ctl("start", &["--timeout", RECOVERY_S, "--log", &format!("{}/../server.log", self.data)])
            .await
    }

    /// Crashes the server and starts it again; it recovers from its log.
    ///
    /// # Errors
    /// If the server does not start again.
    pub async fn crash(&self) -> Result<(), String> {
        self.stop(Stop::Immediate).await?;
        self.start().await
    }

    async fn pg_ctl(&self, verb: &str, options: &[&str]) -> Result<(), String> {
        // The owner of the data runs the server; root may act for the owner.
        const AS_OWNER: &str = r#"owner=$(stat -c %U "$PGDATA"); as=; [ "$owner" = "$(id -un)" ] || as="runuser -u $owner --"
            cd / && exec $as "$@""#;
        let mut command = Command::new("sh");
        command.args(["-c", AS_OWNER, "pg_ctl", &format!("{}/pg_ctl", self.programs), verb]);
        command.args(["--wait", "--silent"]).args(options).env("PGDATA", &self.data);
        // The server would keep the pipes of the process that starts it open.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match command.status().await {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("`pg_ctl {verb}` failed: {status}")),
            Err(error) => Err(format!("`pg_ctl {verb}` could not be run: {error}")),
        }
    }
}
