//! Every dependency has its reason in docs/dependencies.md, and every reason there belongs to a dependency.
//!
//! The page names a dependency in backticks at the start of a table row, a list item or a heading. Dependencies that share
//! a reason are named one after the other.

use crate::tidy::markdown;
use crate::tidy::repo::{File, Finding, Repo};

const REASONS: &str = "docs/dependencies.md";
const MANIFEST: &str = "Cargo.toml";

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let Some(manifest) = repo.file(MANIFEST) else { return Vec::new() };
    let Some(reasons) = repo.file(REASONS) else {
        return vec![
            manifest.finding(1, format!("{REASONS} is missing: it gives the reason of every dependency")),
        ];
    };
    let declared = declared(manifest);
    let explained: Vec<(usize, String)> = explained(&reasons.text);

    let mut findings = Vec::new();
    for (line, name) in &declared {
        if !explained.iter().any(|(_, other)| other == name) {
            findings.push(manifest.finding(*line, format!("`{name}` has no line in {REASONS}")));
        }
    }
    let used = |name: &str| declared.iter().any(|(_, other)| other == name) || is_direct(repo, name);
    for (line, name) in explained.iter().filter(|(_, name)| !used(name)) {
        findings.push(reasons.finding(*line, format!("`{name}` is no longer a dependency")));
    }
    findings
}

/// The dependencies of the workspace table that are not packages of this workspace.
fn declared(manifest: &File) -> Vec<(usize, String)> {
    let text: toml::Table = manifest.text.parse().unwrap_or_default();
    let table = text.get("workspace").and_then(|table| table.get("dependencies")?.as_table());
    let foreign = table.into_iter().flatten().filter(|(_, value)| value.get("path").is_none());
    foreign.map(|(name, _)| (manifest.line_of_key(name), name.clone())).collect()
}

/// A package may have a dependency that the workspace table lacks.
fn is_direct(repo: &Repo, name: &str) -> bool {
    repo.packages.iter().flat_map(|package| &package.dependencies).any(|dependency| dependency.name == name)
}

/// The dependencies that the page names, with their lines.
fn explained(text: &str) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    for (line, prose) in markdown::prose(text) {
        let mut rest = prose.trim_start_matches(|char: char| "|-*#+ \t".contains(char));
        if rest.len() == prose.len() {
            // A paragraph may start with any code.
            continue;
        }
        while let Some((name, after)) = rest.strip_prefix('`').and_then(|rest| rest.split_once('`')) {
            names.push((line, name.to_string()));
            rest = after.trim_start_matches(|char: char| ", /+&".contains(char)).trim_start_matches("and ");
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::sample;
    use crate::tidy::repo::printed;

    const TABLE: &str = r#"[workspace.dependencies]
outlast-model = { path = "crates/model" }
serde = "1"
sha2 = "0.10"
"#;

    #[test]
    fn a_dependency_without_a_reason_is_refused() {
        let repo = Repo::of(&[(MANIFEST, TABLE), (REASONS, "Uses `sha2`.\n\n| `serde` | the codec |\n")]);
        assert_eq!(printed(check(&repo)), ["Cargo.toml:4: `sha2` has no line in docs/dependencies.md"]);
        assert_eq!(check(&Repo::of(&[(MANIFEST, TABLE)])).len(), 1, "a missing page is one finding");
    }

    #[test]
    fn a_reason_without_a_dependency_is_refused() {
        let reasons = "# Why\n- `serde`, `sha2`: with `derive`\n- `sqlx`: gone\n- `uuid`: direct\n";
        let mut repo = Repo::of(&[(MANIFEST, TABLE), (REASONS, reasons)]);
        repo.packages = vec![sample("a", &["uuid"])];
        assert_eq!(printed(check(&repo)), ["docs/dependencies.md:3: `sqlx` is no longer a dependency"]);
    }
}
