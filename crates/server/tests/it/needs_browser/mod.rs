//! The dashboard in Chromium, on a SQLite store with a runtime. `cargo xtask test --only browser` installs the browser.

mod bulk;
mod console;
mod figures;
mod hostile;
mod keyboard;
mod live;
mod operate;
mod screens;
mod shop;
