//! The reference in docs/cli.md, made from the command line itself. The test fails if the page is not current.

use crate::args::Args;
use clap::{Arg, Command, CommandFactory};
use std::fmt::Write;

const BEGIN: &str = "<!-- begin of the generated reference -->\n";
const END: &str = "<!-- end of the generated reference -->\n";

/// A part per command, in the order of `--help`.
fn markdown() -> String {
    let mut root = Args::command();
    root.build();
    let mut text = String::new();
    add(&mut text, &root, "outlast");
    text
}

fn add(text: &mut String, command: &Command, name: &str) {
    let children: Vec<&Command> = command
        .get_subcommands()
        .filter(|child| !child.is_hide_set() && child.get_name() != "help")
        .collect();
    if children.is_empty() {
        leaf(text, command, name);
    }
    for child in children {
        add(text, child, &format!("{name} {}", child.get_name()));
    }
}

fn leaf(text: &mut String, command: &Command, name: &str) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let places: String = command.get_positionals().map(|arg| format!(" {}", place(arg))).collect();
    // Writing to a String cannot fail.
    let _ = write!(text, "### `{name}{places}`\n\n{}.\n\n", about.trim_end_matches('.'));
    let options: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| {
            !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str()) || is_own(arg)
        })
        .filter(|arg| !arg.is_hide_set())
        .collect();
    if options.is_empty() {
        return;
    }
    text.push_str("| option | default | meaning |\n|---|---|---|\n");
    for option in options {
        let help = option.get_help().map(ToString::to_string).unwrap_or_default();
        let default: Vec<String> =
            option.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
        let is_flag = !option.get_action().takes_values();
        let default = match default.join(",") {
            _ if is_flag => String::new(),
            value if value.is_empty() => String::new(),
            value => format!("`{value}`"),
        };
        let _ = writeln!(
            text,
            "| `{}` | {default} | {} |",
            shown(option),
            help.replace('\n', " ").replace('|', "\\|")
        );
    }
    text.push('\n');
}

/// An option of this name with a value is one of the command; clap's own has none.
fn is_own(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

fn place(arg: &Arg) -> String {
    let name = value_name(arg);
    let many = if arg.get_num_args().is_some_and(|count| count.max_values() > 1) { "..." } else { "" };
    if arg.is_required_set() { format!("{name}{many}") } else { format!("[{name}{many}]") }
}

fn value_name(arg: &Arg) -> String {
    let name = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    name.unwrap_or_else(|| arg.get_id().as_str().to_uppercase())
}

fn shown(arg: &Arg) -> String {
    let Some(long) = arg.get_long() else { return place(arg) };
    let short = arg.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    match arg.get_action().takes_values() {
        true => format!("{short}--{long} {}", value_name(arg)),
        false => format!("{short}--{long}"),
    }
}

#[test]
fn page_of_the_command_has_the_current_reference() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("docs/cli.md has the mark of the begin");
    let (found, after) = rest.split_once(END).expect("docs/cli.md has the mark of the end");
    let current = format!("\n{}", markdown());
    if std::env::var_os("OUTLAST_BLESS").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{current}{END}{after}")).unwrap();
        return;
    }
    let differs = found.lines().zip(current.lines()).find(|(found, current)| found != current);
    assert!(
        found == current,
        "the reference in docs/cli.md is not current: OUTLAST_BLESS=1 cargo test -p outlast-cli reference writes it ({differs:?})"
    );
}
