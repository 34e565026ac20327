//! The page of the demo in Chromium: a visitor approves an order, kills a worker, and reads the proof.

use crate::support::{Running, demo};
use outlast_browser::{Tab, open};
use std::path::Path;
use std::process::Command;

/// The files that make the page of the demo.
const PAGE: [&str; 4] = [
    "crates/cli/src/demo/page/demo.css",
    "crates/cli/src/demo/page/demo.html",
    "crates/cli/src/demo/page/demo.js",
    "crates/server/assets/style.css",
];

/// A demo that stays after its batch. It ends with the value.
struct Demo {
    running: Running,
    address: String,
}

impl Demo {
    fn start(dir: &Path, more: &[&str]) -> Self {
        let mut command = crate::support::outlast(demo(dir, more));
        let running = Running::start(command.args(["--port", "0", "--stay"]));
        let mut lines = std::iter::from_fn(|| running.line());
        let line = lines.find(|line| line.contains("/demo")).expect("the address of the page");
        let address = line.split("http://").nth(1).unwrap().split("/demo").next().unwrap().to_string();
        Self { running, address: format!("http://{address}") }
    }
}

impl Drop for Demo {
    /// Ends the supervisor with Ctrl-C, so that it ends its workers.
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-INT", &self.running.child.id().to_string()]).status();
        let _ = self.running.status();
    }
}

/// Approves each order that waits for the visitor, until an expression is true.
async fn approve_until(tab: &Tab, expression: &str) {
    let approve = "document.querySelectorAll('#waiting button.primary:not([data-clicked])').forEach((button) => { \
                   button.dataset.clicked = 'true'; button.click(); })";
    tab.until(&format!("({approve}, {expression})")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn visitor_approves_an_order_and_sees_it_delivered() {
    // The demo begins when the browser is free.
    let tab = open().await;
    let dir = tempfile::tempdir().unwrap();
    let demo = Demo::start(dir.path(), &["--orders", "40", "--pace", "0.4"]);
    tab.go(&format!("{}/demo", demo.address)).await;
    tab.until_text("A shop that loses no order").await;
    tab.until_some("#waiting li a").await;
    tab.check("demo with an approval").await;
    tab.shot("demo-approval").await;
    tab.prefer("dark").await;
    tab.check("demo in dark mode").await;
    tab.shot("demo-dark").await;
    tab.prefer("light").await;
    let order = tab.run("return document.querySelector('#waiting li a').textContent", &[]).await;
    let order = order.as_str().unwrap();
    tab.click("#waiting li button.primary").await;
    tab.until(&format!(
        "![...document.querySelectorAll('#waiting a')].some((link) => link.textContent === '{order}')"
    ))
    .await;
    // The page of the order says that the approval arrived, and shows the end.
    tab.go(&format!("{}/instances/{order}", demo.address)).await;
    tab.until("document.querySelector('.facts .status').textContent === 'Completed'").await;
    tab.check("approved order").await;
    tab.go(&format!("{}/demo", demo.address)).await;
    approve_until(&tab, "document.getElementById('proof-text').textContent.includes('It holds')").await;
    tab.until("!document.getElementById('again').hidden").await;
    assert_eq!(tab.run("return document.getElementById('twice').textContent", &[]).await, "0");
    tab.check("demo with its proof").await;
    tab.shot("demo-proof").await;
    tab.size(390, 844).await;
    tab.check("demo with its proof on a phone").await;
    tab.shot("demo-proof-phone").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_worker_is_replaced_and_its_activities_are_taken_over() {
    // The demo begins when the browser is free.
    let tab = open().await;
    let dir = tempfile::tempdir().unwrap();
    let demo = Demo::start(dir.path(), &["--orders", "200"]);
    tab.go(&format!("{}/demo", demo.address)).await;
    tab.until_some("#workers button.danger").await;
    // The button kills in the middle of an activity: some of them are short, so the visitor may need several kills.
    tab.until("/runs [2-9]/.test(document.querySelector('#workers').textContent)").await;
    let mut killed = 0;
    while tab.run("return document.querySelectorAll('#kills li li').length", &[]).await == 0 {
        killed += 1;
        assert!(killed < 20, "no worker was killed in the middle of an activity");
        tab.click("#workers button.danger:not(:disabled)").await;
        tab.until(&format!("document.querySelectorAll('#kills > li').length >= Math.min({killed}, 4)")).await;
    }
    tab.check("demo with a killed worker").await;
    tab.shot("demo-killed").await;
    tab.until(
        "[...document.querySelectorAll('#kills > li')].every((kill) => kill.className === 'kill done')",
    )
    .await;
    tab.until_text("runs it again after").await;
    tab.until("!document.querySelector('#workers .dead')").await;
    assert_eq!(tab.run("return document.getElementById('twice').textContent", &[]).await, "0");
    tab.check("demo after the takeover").await;
    tab.size(1120, 740).await;
    tab.document("demo", &PAGE).await;
    tab.size(390, 844).await;
    tab.check("demo on a phone").await;
    tab.shot("demo-phone").await;
}
