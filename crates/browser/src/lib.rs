//! Drives Chromium over WebDriver, for the tests of the dashboard and of the demo's page.
//!
//! | module | holds |
//! |---|---|
//! | `driver` | the process of ChromeDriver, and the session with Chromium |
//! | `wire` | requests of WebDriver |
//! | `tab` | the window that a test uses: navigation, clicks, keys, conditions |
//! | `checks` | checks of a page: console, names of controls, contrast, width |
//! | `shot` | screenshots |
//!
//! [`open`] gives a test the window of the browser. All tests of a program share one browser and use it one after the other.
//! A window is reset before each test: cookies, sizes, media features and the console of the test before are gone.
// A test fails by panicking, also in this crate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod checks;
mod driver;
mod shot;
mod tab;
mod wire;

pub use tab::{Key, Tab, open};
