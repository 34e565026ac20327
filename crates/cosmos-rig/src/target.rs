//! The account that tests run against.

use std::io;

use crate::{Rig, RigOptions};

/// A rig of this process, or an account elsewhere.
pub enum Target {
    /// A rig of this process.
    Rig(Box<Rig>),
    /// An account that `COSMOS_ENDPOINT` and `COSMOS_KEY` name: in Azure, in Microsoft's Docker emulator, or a rig of
    /// another process.
    Account {
        /// Its address.
        endpoint: String,
        /// Its key.
        key: String,
    },
}

impl Target {
    /// The address of the account.
    pub fn endpoint(&self) -> &str {
        match self {
            Self::Rig(rig) => rig.endpoint(),
            Self::Account { endpoint, .. } => endpoint,
        }
    }

    /// The key of the account.
    pub fn key(&self) -> &str {
        match self {
            Self::Rig(rig) => rig.key(),
            Self::Account { key, .. } => key,
        }
    }

    /// The rig, for faults and records. A test that needs them does not run against another account.
    pub fn rig(&self) -> Option<&Rig> {
        match self {
            Self::Rig(rig) => Some(rig),
            Self::Account { .. } => None,
        }
    }
}

/// The account that `COSMOS_ENDPOINT` and `COSMOS_KEY` name, or a new rig with the default settings.
pub async fn target() -> io::Result<Target> {
    let read = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    named_target(read("COSMOS_ENDPOINT"), read("COSMOS_KEY")).await
}

async fn named_target(endpoint: Option<String>, key: Option<String>) -> io::Result<Target> {
    match (endpoint, key) {
        (Some(endpoint), Some(key)) => Ok(Target::Account { endpoint, key }),
        (None, None) => Ok(Target::Rig(Box::new(Rig::start_with(RigOptions::default()).await?))),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "set both COSMOS_ENDPOINT and COSMOS_KEY to test against an account, or neither to test against a rig",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn both_variables_or_neither_name_a_target() {
        let named = named_target(Some("https://a/".into()), Some("k".into())).await.unwrap();
        assert_eq!((named.endpoint(), named.key(), named.rig().is_some()), ("https://a/", "k", false));
        let own = named_target(None, None).await.unwrap();
        assert!(own.rig().is_some() && own.endpoint().starts_with("http://127.0.0.1:"));
        assert!(named_target(Some("https://a/".into()), None).await.is_err());
        assert!(named_target(None, Some("k".into())).await.is_err());
    }
}
