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
    refused(error, &first, &PARTS).map(Failure::usage)
}

/// The sentence for the error, if the first word of the command line is the command of a part that is not built.
fn refused(error: &clap::Error, first: &str, parts: &[Part]) -> Option<String> {
    match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(name)) if name == first => without(name, parts),
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
    use crate::args::Args;
    use clap::Parser;

    #[test]
    fn only_the_first_word_of_a_command_line_is_the_command_of_a_feature() {
        let parts = [Part { command: "absent", feature: "tui", is_built: false }];
        for (line, is_named) in [
            (&["outlast", "absent", "--store", "a.db"][..], true),
            (&["outlast", "instance", "absent"], false),
            (&["outlast", "other"], false),
        ] {
            let Err(error) = Args::try_parse_from(line) else { panic!("no such command: {line:?}") };
            assert_eq!(refused(&error, line[1], &parts).is_some(), is_named, "{line:?}: {error}");
        }
    }

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
