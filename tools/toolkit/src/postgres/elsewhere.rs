//! The same interface on systems that are not Unix, where no server is started. Tests compile this file on Unix too.
#![cfg_attr(unix, allow(dead_code, unreachable_pub, reason = "other systems use it"))]

use std::path::PathBuf;

/// No variables: there is no server.
pub const VARIABLES: &[(&str, &str)] = &[];

/// The same settings as on Unix.
#[derive(Clone, Default)]
pub struct Options {
    /// Unused.
    pub tls: bool,
    /// Unused.
    pub pooled: bool,
    /// Unused.
    pub within: Vec<PathBuf>,
    /// Unused.
    pub settings: Vec<(&'static str, &'static str)>,
}

/// A type without values: no server is started.
pub enum Cluster {}

impl Cluster {
    /// Always an error.
    pub fn start(_: &Options) -> Result<Self, String> {
        Err("a private PostgreSQL is started on Unix only".to_string())
    }

    /// Never called.
    pub fn standby(&self, _: &Options) -> Result<Self, String> {
        match *self {}
    }

    /// Never called.
    pub fn url(&self, _: &str) -> String {
        match *self {}
    }

    /// Never called.
    pub fn process(&self) -> Option<u32> {
        match *self {}
    }

    /// Never called.
    pub fn tool(&self, _: &str, _: &[&str], _: &str) -> Result<String, String> {
        match *self {}
    }

    /// Never called.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        match *self {}
    }
}
