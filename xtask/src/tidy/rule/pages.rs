//! The parts of pages that are copied from source files and from recorded figures are up to date, and the provider guide
//! describes every method and every type of the contract.

use outlast_prove::FOLDER;

use crate::metadata::code::Hashes;
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
    let sources = repo.files.iter().filter(|file| pages::is_source(&file.path));
    let sources: Vec<(&str, &str)> = sources.map(|file| (file.path.as_str(), file.text.as_str())).collect();
    let mut findings: Vec<Finding> =
        repo.with_extension("md").filter_map(|file| stale(file, &sources, &repo.code)).collect();
    if let Some(guide) = repo.file(GUIDE) {
        findings.extend(undescribed(guide, &sources));
    }
    findings.extend(unquoted(repo));
    findings
}

/// The first part of a page that differs from its source.
fn stale(file: &File, sources: pages::Sources<'_>, code: &Hashes) -> Option<Finding> {
    match pages::filled(&file.text, sources, code) {
        Err(Mistake { line, message }) => Some(file.finding(line, message)),
        Ok(filled) => {
            let line = file.text.lines().zip(filled.lines()).position(|(old, new)| old != new)?;
            Some(file.finding(line + 1, "this part differs from its source: run `cargo xtask pages`"))
        }
    }
}

/// Methods that the guide does not describe, and types without a table.
fn undescribed(guide: &File, sources: pages::Sources<'_>) -> Vec<Finding> {
    let (written, parts) = (pages::written(&guide.text), pages::parts(&guide.text));
    let mut messages = Vec::new();
    for name in ["Provider", "ProviderAdmin"] {
        for pages::Method { name: method, .. } in pages::trait_methods(name, sources) {
            if !written.contains(&format!("`{method}`")) && !written.contains(&format!("`{method}(")) {
                messages.push(format!("`{name}::{method}` is in the overview only: describe it"));
            }
        }
    }
    let types = pages::described_types(sources).into_iter().filter(|name| !parts.contains(&("fields", name)));
    messages
        .extend(types.map(|name| format!("the fields of `{name}` are missing: `<!-- fields: {name} -->`")));
    messages.into_iter().map(|message| guide.finding(1, message)).collect()
}

/// Marked lines and recorded figures that no page shows.
fn unquoted(repo: &Repo) -> Vec<Finding> {
    let parts: Vec<(&str, &str)> =
        repo.with_extension("md").flat_map(|file| pages::parts(&file.text)).collect();
    let mut findings = Vec::new();
    for file in &repo.files {
        if QUOTED.iter().any(|folder| file.path.starts_with(folder)) {
            let marked = pages::marked(&file.text).into_iter();
            let unquoted =
                marked.filter(|(_, name)| !parts.contains(&("code", &format!("{}#{name}", file.path))));
            let message = |name: &str| format!("no page quotes `{name}`: remove the mark or quote it");
            findings.extend(unquoted.map(|(line, name)| file.finding(line, message(name))));
        }
        let attempt = file.path.strip_prefix(FOLDER).and_then(|name| name.strip_suffix(".json"));
        if attempt.is_some_and(|name| !parts.contains(&("figures", name))) {
            findings.push(file.finding(1, "no page shows these figures"));
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

    fn found(contract: &str, guide: &str) -> Vec<String> {
        printed(check(&Repo::of(&[(CONTRACT.0, contract), (GUIDE, guide)])))
    }

    #[test]
    fn a_guide_has_a_row_for_every_method_and_field() {
        assert_eq!(found(CONTRACT.1, COMPLETE), [""; 0]);
        let more = CONTRACT.1.replace("    fn read", "    fn write(&self);\n    /// Reads.\n    fn read");
        let method = found(&more, COMPLETE);
        assert_eq!(method.len(), 2, "{method:?}");
        assert!(
            method[0].contains("run `cargo xtask pages`") && method[1].contains("`Provider::write`"),
            "{method:?}"
        );
        let more = CONTRACT.1.replace("    pub id", "    pub tag: u64,\n    /// Id.\n    pub id");
        let field = found(&more, COMPLETE);
        assert!(field.len() == 1 && field[0].starts_with("docs/provider-guide.md:10:"), "{field:?}");
        let removed = "| `gone` | default | Goes. |\n<!-- end -->\n<!-- fields";
        assert_eq!(found(CONTRACT.1, &COMPLETE.replace("<!-- end -->\n<!-- fields", removed)).len(), 1);
    }

    #[test]
    fn a_type_without_a_table_and_a_table_without_a_type_are_refused() {
        let message = "docs/provider-guide.md:1: the fields of `Info` are missing: `<!-- fields: Info -->`";
        assert_eq!(found(CONTRACT.1, COMPLETE.split("<!-- fields").next().unwrap()), [message]);
        let gone = found(CONTRACT.1, &COMPLETE.replace("fields: Info", "fields: Gone"));
        assert!(gone.len() == 2 && gone[0].contains("no type `Gone`"), "{gone:?}");
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
    #[test]
    fn figures_that_no_page_shows_or_that_a_page_shows_wrongly_are_refused() {
        let figures =
            ("testdata/scoreboard/other.json", r#"{"commit": "a", "date": "b", "figures": {"seeds": 7}}"#);
        assert_eq!(
            printed(check(&Repo::of(&[figures]))),
            ["testdata/scoreboard/other.json:1: no page shows these figures"]
        );
        let page = "<!-- figures: other -->\nb, commit a. Shipped code changed since: yes (the record has no hash of the code).\n\n\
            | figure | |\n|---|---|\n| seeds | 7 |\n<!-- end -->\n";
        assert_eq!(check(&Repo::of(&[figures, ("docs/a.md", page)])).len(), 0);
        let stale = page.replace('7', "8");
        assert_eq!(check(&Repo::of(&[figures, ("docs/a.md", &stale)])).len(), 1);
    }
}
