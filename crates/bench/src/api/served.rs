//! A process of `outlast serve`.

use super::http::Http;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest time for a start.
const LONGEST: Duration = Duration::from_secs(60);

pub(crate) struct Served {
    process: Child,
    /// The host and port.
    pub(crate) host: String,
    /// The time from the start of the process to its first answer.
    pub(crate) started_in: Duration,
}

impl Served {
    pub(crate) fn start(outlast: &Path, store: &[String]) -> Result<Self, String> {
        let since = Instant::now();
        let mut command = Command::new(outlast);
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(store);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let out = process.stdout.take().ok_or("the server has no output")?;
        let mut lines = BufReader::new(out).lines();
        let line = lines.next().and_then(Result::ok).unwrap_or_default();
        // A server whose output is not read any more would end at its next line.
        std::thread::Builder::new().spawn(move || lines.for_each(drop)).map_err(|error| error.to_string())?;
        let host = line.rsplit_once("http://").map(|(_, host)| host.trim_end_matches('/').to_string());
        let Some(host) = host else {
            let _ = process.kill();
            let _ = process.wait();
            return Err(format!("the server said '{line}'"));
        };
        let mut served = Self { process, host, started_in: Duration::ZERO };
        while served.http().and_then(|mut http| http.get("/healthz")).is_err() {
            if since.elapsed() > LONGEST {
                return Err("the server did not answer".to_string());
            }
            std::thread::yield_now();
        }
        served.started_in = since.elapsed();
        Ok(served)
    }

    pub(crate) fn http(&self) -> Result<Http, String> {
        Http::open(&self.host)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
