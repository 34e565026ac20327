//! Compile errors: each mistake is explained at the tokens of the user, once.
// A test fails by panicking.
#![allow(clippy::unwrap_used)]

mod clippy;

/// One call for all cases, so that the dependencies are compiled once. `TRYBUILD=overwrite` writes the expected errors.
#[test]
fn mistakes_are_explained_where_they_are_made() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}

/// The page about determinism quotes the errors of one of the cases.
#[test]
fn the_errors_of_the_page_are_those_of_the_compiler() {
    let page = include_str!("../../../../docs/guide/determinism.md");
    let expected = include_str!("../ui/18_determinism_rules.stderr");
    let is_error = |line: &&str| line.starts_with("error");
    let quoted: Vec<&str> = page.lines().filter(is_error).collect();
    assert!(quoted.len() >= 10, "{quoted:?}");
    for error in expected.lines().filter(is_error) {
        assert!(quoted.contains(&error), "docs/guide/determinism.md lacks:\n{error}");
    }
    for error in quoted {
        assert!(expected.lines().any(|line| line == error), "the compiler does not say:\n{error}");
    }
}
