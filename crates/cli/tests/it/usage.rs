//! Command lines that are not understood, and help.

use crate::support::run;

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    for (args, part) in [
        (&["nonsense"][..], "unrecognized subcommand 'nonsense'"),
        (&["instance", "list"], "--store <URL>"),
        (
            &["instance", "list", "--store", "a.db", "--status", "asleep"],
            "[possible values: running, completed",
        ),
        (&["instance", "list", "--store", "a.db", "--limit", "0"], "0 is not in 1..=1000"),
        (&["instance", "show", "--store", "a.db"], "<INSTANCE>"),
        (&["demo", "--orders", "0"], "0 is not in 1..=10000"),
        (&["demo", "--pace", "fast"], "give a number from 0 to 100"),
    ] {
        let said = run(args);
        assert_eq!(said.code, Some(2), "{args:?}");
        assert!(said.err.contains(part), "{part} in {}", said.err);
        assert_eq!(said.out, "");
    }
}

#[test]
fn help_says_what_a_person_needs() {
    for (args, part) in [
        (&["--help"][..], "Try `outlast demo`"),
        (&["demo", "--help"], "start it again: it goes on where it was"),
        (&["instance", "--help"], "Ask an instance to stop"),
        (&["instance", "cancel", "--help"], "takes effect at the instance's next turn"),
        (&["--version"], concat!("outlast ", env!("CARGO_PKG_VERSION"))),
    ] {
        let out = run(args).fine();
        assert!(out.contains(part), "{part} in {out}");
        assert!(!out.contains('\u{1b}'));
    }
}
