//! The PostgreSQL that `cargo xtask` has started: it can be stopped, started again, and crashed.

use std::process::Stdio;
use tokio::process::Command;

/// The server itself, its programs and its data, as `cargo xtask` tells them.
pub const URL: &str = "OUTLAST_TEST_POSTGRES_URL";
const PROGRAMS: &str = "OUTLAST_TEST_POSTGRES_BIN";
const DATA: &str = "OUTLAST_TEST_POSTGRES_DATA";

/// A variable that `cargo xtask` sets.
///
/// # Errors
/// It is not set.
pub fn variable(name: &str) -> Result<String, String> {
    std::env::var(name)
        .map_err(|_| format!("{name} is not set: `cargo xtask postgres -- COMMAND` starts a server"))
}

/// How a server is told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Connections are ended with a word, transactions undone.
    Fast,
    /// Without a word; it recovers from its log when it is started.
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

/// Who may stop and start the server.
#[derive(Debug, Clone)]
pub struct Control {
    programs: String,
    data: String,
}

impl Control {
    /// Of the server that the variables name.
    ///
    /// # Errors
    /// There is none.
    pub fn find() -> Result<Self, String> {
        Ok(Self { programs: variable(PROGRAMS)?, data: variable(DATA)? })
    }

    /// Ends the server.
    ///
    /// # Errors
    /// It does not end.
    pub async fn stop(&self, how: Stop) -> Result<(), String> {
        self.pg_ctl("stop", &["--mode", how.mode()]).await
    }

    /// Starts the server that was stopped, on the same data and port.
    ///
    /// # Errors
    /// It does not start.
    pub async fn start(&self) -> Result<(), String> {
        self.pg_ctl("start", &["--log", &format!("{}/../server.log", self.data)]).await
    }

    /// The whole server ends without a word, and recovers from its log.
    ///
    /// # Errors
    /// It does not come back.
    pub async fn crash(&self) -> Result<(), String> {
        self.stop(Stop::Immediate).await?;
        self.start().await
    }

    async fn pg_ctl(&self, verb: &str, options: &[&str]) -> Result<(), String> {
        // Who owns the data runs the server; root may act for it.
        const AS_OWNER: &str = r#"owner=$(stat -c %U "$PGDATA"); as=; [ "$owner" = "$(id -un)" ] || as="runuser -u $owner --"
            cd / && exec $as "$@""#;
        let mut command = Command::new("sh");
        command.args(["-c", AS_OWNER, "pg_ctl", &format!("{}/pg_ctl", self.programs), verb]);
        command.args(["--wait", "--silent"]).args(options).env("PGDATA", &self.data);
        // A server keeps the pipes of who started it.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match command.status().await {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("`pg_ctl {verb}` failed: {status}")),
            Err(error) => Err(format!("`pg_ctl {verb}` could not be run: {error}")),
        }
    }
}
