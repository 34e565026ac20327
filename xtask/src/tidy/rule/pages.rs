//! The parts of pages that are copied from source files are up to date, and the provider guide describes every method and
//! every type of the contract.

use crate::pages::{self, Mistake};
use crate::tidy::repo::{File, Finding, Repo};

/// The page that describes the contract.
const GUIDE: &str = "docs/provider-guide.md";
/// The folders with files whose marks the pages quote.
const QUOTED: &[&str] = &[
    "crates/tutorial/src/",
    "crates/testing/tests/it/guide/",
    "crates/testing/tests/it/cookbook/",
    "crates/compat/tests/it/coming_from.rs",
];

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let sources: Vec<(&str, &str)> =
        repo.with_extension("rs").map(|file| (file.path.as_str(), file.text.as_str())).collect();
    let mut findings: Vec<Finding> =
        repo.with_extension("md").filter_map(|file| stale(file, &sources)).collect();
    if let Some(guide) = repo.file(GUIDE) {
        findings.extend(undescribed(guide, &sources));
    }
    findings.extend(unquoted(repo));
    findings
}

fn stale(file: &File, sources: pages::Sources<'_>) -> Option<Finding> {
    match pages::filled(&file.text, sources) {
        Err(Mistake { line, message }) => Some(file.finding(line, message)),
        Ok(filled) => {
            let line = file.text.lines().zip(filled.lines()).position(|(old, new)| old != new)?;
            Some(file.finding(line + 1, "this part differs from its source: run `cargo xtask pages`"))
        }
    }
}

/// Methods that the guide does not describe, and types without a table.
fn undescribed(guide: &File, sources: pages::Sources<'_>) -> Vec<Finding> {
    let written = pages::written(&guide.text);
    let parts = pages::parts(&guide.text);
    let mut findings = Vec::new();
    for name in ["Provider", "ProviderAdmin"] {
        for method in pages::trait_methods(name, sources) {
            let named = [format!("`{}`", method.name), format!("`{}(", method.name)];
            if !named.iter().any(|named| written.contains(named)) {
                let message = format!("`{name}::{}` is in the overview only: describe it", method.name);
                findings.push(guide.finding(1, message));
            }
        }
    }
    for name in pages::described_types(sources) {
        if !parts.contains(&("fields", &name)) {
            findings.push(
                guide.finding(1, format!("the fields of `{name}` are missing: `<!-- fields: {name} -->`")),
            );
        }
    }
    findings
}

/// Marked lines that no page shows.
fn unquoted(repo: &Repo) -> Vec<Finding> {
    let quoted: Vec<&str> = repo
        .with_extension("md")
        .flat_map(|file| pages::parts(&file.text))
        .filter_map(|(kind, what)| (kind == "code").then_some(what))
        .collect();
    let mut findings = Vec::new();
    let is_quoted = |file: &&File| QUOTED.iter().any(|folder| file.path.starts_with(folder));
    for file in repo.files.iter().filter(is_quoted) {
        for (line, name) in pages::marked(&file.text) {
            if !quoted.contains(&format!("{}#{name}", file.path).as_str()) {
                findings.push(
                    file.finding(line, format!("no page quotes `{name}`: remove the mark or quote it")),
                );
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::repo::printed;

    const CONTRACT: (&str, &str) = (
        "crates/provider/src/lib.rs",
        "pub trait Provider: Send {\n    /// Reads.\n    fn read(&self);\n}\npub struct Info {\n    /// Id.\n    pub id: u64,\n}\n",
    );
    const COMPLETE: &str = "`read` reads.\n<!-- methods: Provider -->\n| method | | purpose |\n|---|---|---|\n\
        | `read` | **required** | Reads. |\n<!-- end -->\n<!-- fields: Info -->\n| field | type | meaning |\n\
        |---|---|---|\n| `id` | `u64` | Id. |\n<!-- end -->\n";

    #[test]
    fn a_complete_guide_is_accepted() {
        assert_eq!(printed(check(&Repo::of(&[CONTRACT, (GUIDE, COMPLETE)]))), [""; 0]);
    }

    #[test]
    fn a_new_method_and_a_new_field_without_a_row_are_refused() {
        let more = CONTRACT.1.replace("    fn read", "    fn write(&self);\n    /// Reads.\n    fn read");
        let found = printed(check(&Repo::of(&[(CONTRACT.0, &more), (GUIDE, COMPLETE)])));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].contains("run `cargo xtask pages`") && found[1].contains("`Provider::write`"),
            "{found:?}"
        );
        let more = CONTRACT.1.replace("    pub id", "    pub tag: u64,\n    /// Id.\n    pub id");
        let found = printed(check(&Repo::of(&[(CONTRACT.0, &more), (GUIDE, COMPLETE)])));
        assert!(found.len() == 1 && found[0].starts_with("docs/provider-guide.md:10:"), "{found:?}");
    }

    #[test]
    fn a_row_for_a_removed_method_is_refused() {
        let page = COMPLETE
            .replace("<!-- end -->\n<!-- fields", "| `gone` | default | Goes. |\n<!-- end -->\n<!-- fields");
        assert_eq!(check(&Repo::of(&[CONTRACT, (GUIDE, &page)])).len(), 1);
    }

    #[test]
    fn a_type_without_a_table_and_a_table_without_a_type_are_refused() {
        let page = COMPLETE.split("<!-- fields").next().unwrap();
        let found = printed(check(&Repo::of(&[CONTRACT, (GUIDE, page)])));
        assert_eq!(
            found,
            ["docs/provider-guide.md:1: the fields of `Info` are missing: `<!-- fields: Info -->`"]
        );
        let page = COMPLETE.replace("fields: Info", "fields: Gone");
        let found = printed(check(&Repo::of(&[CONTRACT, (GUIDE, &page)])));
        assert!(found.len() == 2 && found[0].contains("no type `Gone`"), "{found:?}");
    }

    #[test]
    fn a_mark_that_no_page_quotes_is_refused() {
        let source = ("crates/tutorial/src/a.rs", "// guide: a\nfn a() {}\n// guide: end\n");
        let found = printed(check(&Repo::of(&[source])));
        assert_eq!(found, ["crates/tutorial/src/a.rs:1: no page quotes `a`: remove the mark or quote it"]);
        let page = "<!-- code: crates/tutorial/src/a.rs#a -->\n```rust\nfn a() {}\n```\n<!-- end -->\n";
        assert_eq!(check(&Repo::of(&[source, ("docs/a.md", page)])).len(), 0);
        let stale = page.replace("fn a", "fn b");
        assert_eq!(check(&Repo::of(&[source, ("docs/a.md", &stale)])).len(), 1);
    }
}
