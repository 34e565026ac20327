//! Tests that drive a browser: the dashboard, and the page of the demo.

use outlast_toolkit::installed;

use super::{Outcome, libtest};

/// The system packages: Chromium, its driver, and a font, without which texts have no glyphs.
const PACKAGES: &[&str] = &["chromium", "chromium-driver", "fonts-dejavu-core"];

/// The programs that ChromeDriver looks for. Machines of hosted CI services have Chrome.
const BROWSERS: &[&str] = &["chromium", "chromium-browser", "google-chrome"];

/// Runs the tests. Without a browser the suite is skipped with the command that installs it, and fails in CI.
pub(super) fn run() -> Result<Outcome, String> {
    let is_there = || {
        let has = |program: &str| installed::succeeds(program, &["--version"]);
        (BROWSERS.iter().any(|program| has(program)) && has("chromedriver")).then_some(())
    };
    let then = "run `cargo xtask test --only browser`";
    match installed::find_or_install_all("Chromium with its driver", PACKAGES, then, is_there) {
        Ok(()) => libtest::browser_tests().map(Outcome::Ran),
        Err(reason) => Ok(Outcome::Lacking(reason)),
    }
}
