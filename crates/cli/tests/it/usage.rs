//! Invalid command lines, and help.

use crate::support::run;

#[test]
fn an_invalid_command_line_is_a_usage_error() {
    for (args, part) in [
        (&["nonsense"][..], "unrecognized subcommand 'nonsense'"),
        (&["instance", "list"], "no store is named: give --store <URL>, or set OUTLAST_STORE"),
        (&["instance", "list", "--store", "a.db", "--idle-for", "long"], "ms, s, m, h or d, as in 90s"),
        (&["instance", "list", "--store", "a.db", "--schema", "shop"], "--schema is for PostgreSQL stores"),
        (
            &["instance", "list", "--store", "a.db", "--status", "asleep"],
            "[possible values: running, completed",
        ),
        (&["instance", "list", "--store", "a.db", "--limit", "0"], "0 is not in 1..=1000"),
        (&["instance", "show", "--store", "a.db"], "<INSTANCE>"),
        (&["instance", "reset", "i", "--store", "a.db"], "--to-event <N>"),
        (&["instance", "fork", "i", "--to-event", "1", "--store", "a.db"], "--as <NEW-ID>"),
        (&["stress"], "no store is named: give --store memory"),
        (&["stress", "--store", "memory", "--preset", "huge"], "[possible values: quick, baseline, default"),
        (&["stress", "--store", "memory", "--pool-size", "1"], "1 is not in 2..=500"),
        (&["demo", "--orders", "0"], "0 is not in 1..=10000"),
        (&["demo", "--pace", "fast"], "give a number from 0 to 100"),
        (&["instance", "top"], "unrecognized subcommand 'top'"),
        #[cfg(not(feature = "tui"))]
        (&["top", "--store", "a.db"], "`cargo install --path crates/cli --features tui` builds it"),
        #[cfg(not(feature = "server"))]
        (&["serve", "--store", "a.db"], "`cargo install --path crates/cli --features server` builds it"),
    ] {
        let said = run(args);
        assert_eq!(said.code, Some(2), "{args:?}");
        assert!(said.err.contains(part), "{part} in {}", said.err);
        assert_eq!(said.out, "");
    }
}

#[test]
fn help_names_the_commands_and_options() {
    for (args, part) in [
        (&["--help"][..], "Try `outlast demo`"),
        (&["demo", "--help"], "start it again: it continues where it was"),
        (&["instance", "--help"], "Cancel an instance"),
        (&["instance", "list", "--help"], "--status Running --idle-for 1h"),
        (&["instance", "show", "--help"], "PGPASSFILE"),
        (&["instance", "show", "--help"], "The key of a Cosmos DB account is in COSMOS_KEY"),
        (&["stress", "--help"], "--preset default,large-payload --pool-size 2,10,20"),
        (&["instance", "why", "--help"], "outlast instance why order-17 --store shop.db -o json"),
        (&["instance", "timeline", "--help"], "Long idle times are cut out and shown as ~"),
        (&["instance", "diff", "--help"], "--other-execution 5"),
        (&["instance", "signal", "--help"], "The name of the event"),
        (&["instance", "enqueue", "--help"], "Send a message to a queue of an instance"),
        (&["instance", "cancel", "--help"], "takes effect at the instance's next turn"),
        (&["instance", "reset", "--help"], "outlast instance reset order-17 --to-event 7 --dry-run"),
        (&["--version"], concat!("outlast ", env!("CARGO_PKG_VERSION"))),
    ] {
        let out = run(args).fine();
        assert!(out.contains(part), "{part} in {out}");
        assert!(!out.contains('\u{1b}'));
    }
}

#[test]
fn secrets_of_a_misplaced_url_are_not_printed() {
    let url = "postgres://me:s3cret@127.0.0.1:1/db";
    let misspelt = format!("--stroe={url}");
    for args in [
        &["instance", "list", url][..],
        &["instance", url],
        &[url],
        &["instance", "list", &misspelt],
        &["instance", "list", "--store", url, "--status", url],
        &["instance", "list", "--store", url, "--limit", url],
        &["stress", "--store", url, "--preset", url],
    ] {
        let said = run(args);
        assert_eq!(said.code, Some(2), "{args:?}: {said:?}");
        assert!(!said.err.contains("s3cret") && said.err.contains("error: "), "{args:?}: {}", said.err);
    }
}

#[test]
fn secrets_of_a_store_that_cannot_be_opened_are_not_printed() {
    for (store, part) in [
        ("postgres://me:s3cret@127.0.0.1:1/db", "no connection to the server"),
        ("postgres://me:s3cret@127.0.0.1:1/db?bogus=s3cret", "the name of its parameter number 1 is unknown"),
        ("postgres:me:s3cret@127.0.0.1", "cannot use database URL"),
        ("mysql://me:s3cret@127.0.0.1/db", "does not know 'mysql' stores"),
        ("host=127.0.0.1 port=1 password=s3cret", "write postgres://USER@HOST/DATABASE"),
        #[cfg(not(feature = "cosmos"))]
        ("cosmos://s3cret@127.0.0.1:1/db", "cargo install --path crates/cli --features cosmos"),
    ] {
        let said = run(["instance", "show", "x", "--store", store]);
        let code = if part.starts_with("no connection") { 7 } else { 1 };
        assert!(said.code == Some(code) && said.err.contains(part), "{store}: {said:?}");
        assert!(!said.err.contains("s3cret"), "{store}: {said:?}");
    }
}

#[test]
fn completions_and_manual_pages_have_the_subcommands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(["completions", shell]).fine();
        assert!(script.contains("doctor") && script.contains("timeline"), "{shell}");
    }
    assert!(run(["man"]).fine().contains(".TH outlast"));
    let dir = tempfile::tempdir().unwrap();
    run(["man", "--dir", dir.path().to_str().unwrap()]).fine();
    let page = std::fs::read_to_string(dir.path().join("outlast-instance-why.1")).unwrap();
    assert!(page.contains("Say in one sentence"), "{page}");
    let error = run(["man", "--dir", "/nowhere/at/all"]).failed();
    assert!(error.contains("'/nowhere/at/all'"), "{error}");
}

#[test]
fn licences_have_every_package_with_its_texts() {
    let all = run(["licenses"]).fine();
    assert!(all.starts_with("PACKAGE ") && all.contains("\nserde_json "), "{}", &all[..200]);
    assert!(all.contains("Permission is hereby granted") && all.contains("Apache License"));
    assert!(!all.contains('\u{1b}'));
    let list = run(["licenses", "--list"]).fine();
    assert!(list.len() < all.len() / 5 && !list.contains("Permission is hereby granted"));
    let one = run(["licenses", "serde_json", "-o", "json"]).json();
    let package = &one["packages"][0];
    assert_eq!((&package["name"], &package["license"]), (&"serde_json".into(), &"MIT OR Apache-2.0".into()));
    assert_eq!(one["texts"].as_array().unwrap().len(), package["texts"].as_array().unwrap().len());
    assert!(run(["licenses", "nothing"]).not_found().contains("`outlast licenses --list`"));
}
