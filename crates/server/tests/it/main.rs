//! Tests of the API and the pages, on a real listener.
// A test fails by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod client;
mod dead_letters;
mod generated;
mod history;
mod keyed;
mod kit;
mod limits;
mod logs;
mod metrics;
mod needs_browser;
mod nodes;
mod operate;
mod operations;
mod pages;
mod postgres;
mod queues;
mod same_methods;
mod stream;
mod tls;
