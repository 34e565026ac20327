//! SQL that a test run replaces (feature `test-hooks`).

#[cfg(feature = "test-hooks")]
use std::borrow::Cow;

/// A text of this store and its replacement in the whole process, from the file that `OUTLAST_STATEMENT_MUTANT` names: the two texts
/// with a zero byte between them. `cargo xtask mutants` checks in this way whether the tests notice a changed statement or function,
/// without a build. Every process that opens a store puts the replacement into the texts before their checksums are made.
#[cfg(feature = "test-hooks")]
static MUTANT: std::sync::LazyLock<Option<(String, String)>> = std::sync::LazyLock::new(|| {
    let text = std::fs::read_to_string(std::env::var_os("OUTLAST_STATEMENT_MUTANT")?).ok()?;
    text.split_once('\0').map(|(was, is)| (was.to_string(), is.to_string()))
});

/// A statement, or a text that contains the files of functions.
#[cfg(feature = "test-hooks")]
pub(crate) fn mutated(sql: &str) -> Cow<'_, str> {
    match &*MUTANT {
        Some((was, is)) if sql.contains(was) => sql.replacen(was, is, 1).into(),
        _ => sql.into(),
    }
}

#[cfg(not(feature = "test-hooks"))]
pub(crate) fn mutated(sql: &str) -> &str {
    sql
}
