//! Commands of features: a command that was built without the feature says so.

use crate::failure::Failure;
use clap::error::{ContextKind, ContextValue};

/// A command of a feature.
struct Part {
    command: &'static str,
    feature: &'static str,
    is_built: bool,
}

const PARTS: [Part; 3] = [
    Part { command: "serve", feature: "server", is_built: cfg!(feature = "server") },
    Part { command: "token", feature: "server", is_built: cfg!(feature = "server") },
    Part { command: "top", feature: "tui", is_built: cfg!(feature = "tui") },
];

/// The failure of a command line whose subcommand belongs to a feature that this command was built without; `None` for another error.
pub(crate) fn missing(error: &clap::Error) -> Option<Failure> {
    let first = std::env::args_os().nth(1)?.into_string().ok()?;
    match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(name)) if *name == first => without(name, &PARTS).map(Failure::usage),
        _ => None,
    }
}

fn without(name: &str, parts: &[Part]) -> Option<String> {
    let Part { command, feature, .. } = parts.iter().find(|part| part.command == name && !part.is_built)?;
    Some(format!(
        "there is no `outlast {command}`: this command was built without its feature `{feature}`; in a checkout, \
         `cargo install --path crates/cli --features {feature}` builds it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_of_a_feature_that_is_missing_names_the_feature_and_its_build() {
        let parts = [
            Part { command: "top", feature: "tui", is_built: false },
            Part { command: "serve", feature: "server", is_built: true },
        ];
        let message = without("top", &parts).unwrap();
        assert!(message.contains("without its feature `tui`"), "{message}");
        assert!(message.contains("`cargo install --path crates/cli --features tui` builds it"), "{message}");
        assert_eq!(without("serve", &parts), None, "it is built");
        assert_eq!(without("nonsense", &parts), None, "it belongs to no feature");
    }
}
