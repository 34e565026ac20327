//! The process of ChromeDriver, and the session with Chromium that all tests of a program share.

use crate::wire::{self, Refused};
use hyper::Method;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Weak};
use tempfile::TempDir;
use tokio::sync::Mutex;

/// The programs of the system packages that `cargo xtask test` installs.
const INSTALL: &str = "ChromeDriver cannot be started: run `apt-get install -y --no-install-recommends chromium chromium-driver \
     fonts-dejavu-core` as root";

/// Chromium has no sandbox because tests run as root in CI, and asks no server of its vendor.
const FLAGS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--window-size=1280,800",
];

/// A running Chromium. It ends when the last test that uses it, or waits for it, has ended.
pub(crate) struct Browser {
    port: u16,
    session: String,
    driver: Child,
    _profile: TempDir,
    /// Held by the test that uses the browser.
    pub(crate) turn: Arc<Mutex<()>>,
}

/// The browser of this program.
static SHARED: Mutex<Weak<Browser>> = Mutex::const_new(Weak::new());

/// The browser that other tests of this program use too, or a new one.
pub(crate) async fn shared() -> Arc<Browser> {
    let mut shared = SHARED.lock().await;
    if let Some(browser) = shared.upgrade() {
        return browser;
    }
    let browser = Arc::new(Browser::start().await);
    *shared = Arc::downgrade(&browser);
    browser
}

impl Browser {
    async fn start() -> Self {
        let mut driver = Command::new("chromedriver")
            .args(["--port=0", "--log-level=SEVERE"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect(INSTALL);
        let port = port(driver.stdout.take().expect("a pipe"));
        let profile = tempfile::tempdir().expect("a folder for the profile");
        let flag = format!("--user-data-dir={}", profile.path().display());
        let args: Vec<&str> = FLAGS.iter().copied().chain([flag.as_str()]).collect();
        let wishes = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": args},
            "goog:loggingPrefs": {"browser": "ALL"},
            // A dialog of a script stays open, and the next request fails because of it.
            "unhandledPromptBehavior": "ignore",
        }}});
        let answer = wire::ask(port, Method::POST, "/session", &wishes).await;
        let answer = answer.unwrap_or_else(|refused| panic!("Chromium did not start: {refused}"));
        let session = answer["sessionId"].as_str().expect("the id of the session").to_string();
        Self { port, session, driver, _profile: profile, turn: Arc::default() }
    }

    /// Sends a request of the session.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: &Value) -> Result<Value, Refused> {
        wire::ask(self.port, method, &format!("/session/{}{path}", self.session), body).await
    }
}

impl Drop for Browser {
    /// Ends Chromium by the end of its session, then the driver.
    fn drop(&mut self) {
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
            let (session, port) = (&self.session, self.port);
            let request = format!(
                "DELETE /session/{session} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n"
            );
            let _ = stream.write_all(request.as_bytes()).and_then(|()| stream.read(&mut [0; 64]));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// The port in `ChromeDriver was started successfully on port 40135.`
fn port(out: impl Read) -> u16 {
    let mut lines = BufReader::new(out).lines().map_while(Result::ok);
    let line =
        lines.find(|line| line.contains("started successfully on port")).expect("the line with the port");
    line.trim_end_matches('.').rsplit(' ').next().and_then(|port| port.parse().ok()).expect("a port")
}
