//! The same interface on systems that are not Unix, where no server is started. Tests compile it on Unix too.
#![cfg_attr(unix, allow(dead_code, reason = "other systems use it"))]

use std::path::PathBuf;

pub(crate) const VARIABLES: &[(&str, &str)] = &[];

#[derive(Default)]
pub(crate) struct Options {
    pub(crate) tls: bool,
    pub(crate) pooled: bool,
    pub(crate) within: Vec<PathBuf>,
}

/// There is none.
pub(crate) enum Cluster {}

impl Cluster {
    pub(crate) fn start(_: &Options) -> Result<Self, String> {
        Err("a private PostgreSQL is started on Unix only".to_string())
    }

    pub(crate) fn url(&self, _: &str) -> String {
        match *self {}
    }

    pub(crate) fn process(&self) -> Option<u32> {
        match *self {}
    }

    pub(crate) fn tool(&self, _: &str, _: &[&str], _: &str) -> Result<String, String> {
        match *self {}
    }

    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        match *self {}
    }
}
