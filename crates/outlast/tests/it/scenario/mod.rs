//! Typical programs. Each runs on every store, without crashes and with a crash before and after each commit.

mod actor;
mod approval;
mod cancelling;
mod cron;
mod kv;
mod monitor;
mod placement;
mod progress;
mod retries;
mod saga;
mod steps;
mod tree;
mod versions;
