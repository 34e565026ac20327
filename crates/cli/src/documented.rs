//! Every call of the command in a code block of a page is parsed. The test names the page and the line of a call that is refused.

use crate::args::Args;
use clap::Parser;
use outlast_toolkit::{blocks, files, process};

/// The arguments in the calls of the command: by its name, by its path, or as the workspace's default program.
fn arguments(words: &[String]) -> Vec<Vec<String>> {
    let calls = |words: &[String]| arguments(words);
    match words {
        [program, args @ ..] if program == "outlast" || program.ends_with("/outlast") => vec![args.to_vec()],
        [cargo, run, release, dashes, args @ ..]
            if [cargo, run, release, dashes] == ["cargo", "run", "--release", "--"] =>
        {
            vec![args.to_vec()]
        }
        [cargo, xtask, postgres, dashes, inner @ ..]
            if [cargo, xtask, postgres, dashes] == ["cargo", "xtask", "postgres", "--"] =>
        {
            calls(inner)
        }
        [shell, flag, script] if shell == "sh" && flag == "-c" => {
            blocks::commands(script).iter().flat_map(|words| calls(words)).collect()
        }
        _ => Vec::new(),
    }
}

/// The calls of a page that the command refuses, and the number of all calls.
fn refused(path: &str, page: &str) -> (Vec<String>, usize) {
    let (mut refused, mut count) = (Vec::new(), 0);
    for call in blocks::of(page).iter().flat_map(blocks::Block::calls) {
        for args in arguments(&call.words) {
            count += 1;
            if let Err(error) = Args::try_parse_from(["outlast".to_string()].iter().chain(&args))
                && error.use_stderr()
            {
                let reason = error.to_string();
                refused.push(format!("{path}:{}: {}", call.line, reason.lines().next().unwrap_or_default()));
            }
        }
    }
    (refused, count)
}

#[test]
fn every_call_in_a_block_of_a_page_is_parsed() {
    let (mut found, mut calls) = (Vec::new(), 0);
    for path in process::files().unwrap().iter().filter(|path| path.ends_with(".md")) {
        let Ok(page) = files::read(&process::root().join(path)) else { continue };
        let (of_page, count) = refused(path, &page);
        found.extend(of_page);
        calls += count;
    }
    assert_eq!(found, [""; 0], "the command refuses these calls");
    assert!(calls > 30, "only {calls} calls were found");
}

#[test]
fn a_renamed_option_is_found_with_its_page_and_line() {
    let page = "# A\n\n```console\n$ outlast instance why a --store b.db\n$ A=b outlast instance why a --stor b.db\nan answer\n```\n\
                ```sh\ncargo run --release -- demon\ncargo xtask postgres -- sh -c 'target/release/outlast stress --stores memory'\n```\n";
    let (found, calls) = refused("docs/a.md", page);
    assert_eq!(
        found,
        [
            "docs/a.md:5: error: unexpected argument '--stor' found",
            "docs/a.md:9: error: unrecognized subcommand 'demon'",
            "docs/a.md:10: error: unexpected argument '--stores' found",
        ]
    );
    assert_eq!(calls, 4);
}
