//! Programs as people write them. Each is played on three stores, undisturbed and with a crash between any two commits.

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
