//! The order of the pages: docs/SUMMARY.md.

/// The list of the pages, in the form of mdBook. Its links are relative to its own folder, as in any page.
pub(super) const PATH: &str = "docs/SUMMARY.md";

/// Pages outside of docs/ that belong to the book.
pub(super) const OUTSIDE: [&str; 5] =
    ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"];

/// Whether the book needs this page.
pub(super) fn is_page(path: &str) -> bool {
    OUTSIDE.contains(&path) || (path.starts_with("docs/") && path.ends_with(".md") && path != PATH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::pages;
    use outlast_toolkit::{files, process};
    use pulldown_cmark::{Event, Parser, Tag};

    /// The links of the summary, in their order.
    fn listed(summary: &str) -> Vec<String> {
        let links = Parser::new(summary).filter_map(|event| match event {
            Event::Start(Tag::Link { dest_url, .. }) => Some(dest_url.to_string()),
            _ => None,
        });
        links.collect()
    }

    #[test]
    fn every_page_of_the_repository_is_in_the_summary_once() {
        let summary = files::read(&process::root().join(PATH)).unwrap();
        let mut listed: Vec<String> =
            listed(&summary).iter().map(|link| pages::resolve(PATH, link).unwrap()).collect();
        listed.sort();
        let mut expected: Vec<String> =
            process::files().unwrap().into_iter().filter(|path| is_page(path)).collect();
        expected.retain(|path| process::root().join(path).is_file());
        expected.sort();
        assert_eq!(listed, expected);
    }
}
