//! Stands in for `cosmos.rs` in a build without the feature `cosmos`: no value of its types exists.

use outlast::providers::Provider;
use std::path::Path;
use std::sync::Arc;

const MISSING: &str = "this program is built without Cosmos DB: use `cargo xtask chaos cosmos`, or build it with `--features cosmos`";

#[derive(Clone)]
pub(super) struct Tools {
    pub(super) provider: Arc<dyn Provider>,
    never: std::convert::Infallible,
}

impl Tools {
    pub(super) async fn open(_disk: &Path, _account: Option<&Account>) -> Result<Self, String> {
        Err(MISSING.to_string())
    }

    pub(super) async fn damage(&self) -> Result<Vec<String>, String> {
        match self.never {}
    }

    pub(super) async fn leftovers(&self) -> Result<Vec<String>, String> {
        match self.never {}
    }
}

pub(crate) enum Account {}

impl Account {
    pub(crate) async fn find() -> Result<Self, String> {
        Err(MISSING.to_string())
    }

    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        match *self {}
    }
}

pub(crate) async fn serve() -> Result<(), String> {
    Err(MISSING.to_string())
}
