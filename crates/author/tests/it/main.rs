//! Compile errors: each mistake is explained at the tokens of the user.

/// One call for all cases, so that the dependencies are compiled once. `TRYBUILD=overwrite` writes the expected errors.
#[test]
fn mistakes_are_explained_where_they_are_made() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
