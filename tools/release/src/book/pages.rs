//! The pages of the book with links that work in it.
//!
//! A link to another page of the book or to a picture stays. A link to any other file leads to the repository. The first page,
//! README.md, is index.md in the book.

use std::ops::Range;

use outlast_toolkit::{files, process};
use pulldown_cmark::{Event, Options, Parser, Tag};

use super::{API, summary};

/// Files of the repository on the web. GitHub redirects the address of a folder.
const REPOSITORY: &str = "https://github.com/outlast-rs/outlast/blob/main/";
/// The API documentation of a crate on the web.
const DOCS: &str = "https://docs.rs/";
const FIRST: &str = "README.md";
const PICTURES: &str = "docs/images/";

pub(super) struct Pages {
    /// The paths of the pages and pictures, from the root of the repository.
    paths: Vec<String>,
}

impl Pages {
    pub(super) fn load() -> Result<Self, String> {
        let is_part = |path: &String| summary::is_page(path) || path.starts_with(PICTURES);
        Ok(Self { paths: process::files()?.into_iter().filter(is_part).collect() })
    }

    pub(super) fn count(&self) -> usize {
        self.paths.iter().filter(|path| path.ends_with(".md")).count()
    }

    /// The files of the book's source folder. With `has_api`, links to docs.rs lead to the documentation beside the book.
    pub(super) fn copied(&self, has_api: bool) -> Result<Vec<(String, Vec<u8>)>, String> {
        let mut copied = Vec::new();
        for path in &self.paths {
            let file = process::root().join(path);
            let bytes = match path.ends_with(".md") {
                true => self.rewritten(path, &files::read(&file)?, has_api).into_bytes(),
                false => std::fs::read(&file).map_err(|error| format!("{path}: {error}"))?,
            };
            copied.push((in_book(path).to_string(), bytes));
        }
        let list = files::read(&process::root().join(summary::PATH))?;
        // The summary moves from docs/ to the folder above.
        let list = replaced(&list, |link| Some(in_book(&resolve(summary::PATH, link)?).to_string()));
        copied.push(("SUMMARY.md".to_string(), list.into_bytes()));
        Ok(copied)
    }

    fn rewritten(&self, path: &str, text: &str, has_api: bool) -> String {
        replaced(text, |link| self.link(path, link, has_api))
    }

    /// The link in the book, if it differs.
    fn link(&self, page: &str, link: &str, has_api: bool) -> Option<String> {
        let up = "../".repeat(page.matches('/').count());
        if let Some(name) = link.strip_prefix(DOCS).filter(|_| has_api) {
            let library = name.trim_end_matches('/').replace('-', "_");
            return Some(format!("{up}{API}/{library}/index.html"));
        }
        let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
        if file.is_empty() || file.contains(':') {
            return None;
        }
        let target = resolve(page, file)?;
        let anchor = anchor.map(|anchor| format!("#{anchor}")).unwrap_or_default();
        match self.paths.contains(&target) {
            true => Some(format!("{up}{}{anchor}", in_book(&target))),
            false => Some(format!("{REPOSITORY}{target}{anchor}")),
        }
    }
}

fn in_book(path: &str) -> &str {
    if path == FIRST { "index.md" } else { path }
}

/// The path of a link from the root of the repository, or `None` if it is outside.
pub(super) fn resolve(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    if link.starts_with('/') {
        parts.clear();
    }
    for part in link.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match part {
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The text with other targets of its links and pictures.
fn replaced(text: &str, target: impl Fn(&str) -> Option<String>) -> String {
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES);
    let definitions = parser.reference_definitions().iter();
    let mut found: Vec<(Range<usize>, String)> =
        definitions.map(|(_, definition)| (definition.span.clone(), definition.dest.to_string())).collect();
    found.extend(parser.into_offset_iter().filter_map(|(event, range)| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            Some((range, dest_url.to_string()))
        }
        _ => None,
    }));
    // The target is the last of the same texts in a link; a link by reference does not contain it.
    let places = found.iter().filter_map(|(range, link)| {
        let start = range.start + text.get(range.clone())?.rfind(link.as_str())?;
        Some((start..start + link.len(), target(link)?))
    });
    let mut places: Vec<(Range<usize>, String)> = places.collect();
    places.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    places.dedup_by_key(|(range, _)| range.start);
    places.into_iter().fold(text.to_string(), |mut text, (range, link)| {
        text.replace_range(range, &link);
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> Pages {
        let paths = ["README.md", "docs/guide.md", "docs/guide/waiting.md", "docs/images/demo.png"];
        Pages { paths: paths.map(str::to_string).to_vec() }
    }

    #[test]
    fn links_lead_to_pages_of_the_book_or_to_the_repository() {
        let text = "# A\n[a](../guide.md#first) [`docs/guide.md`](../../docs/guide.md) ![p](../images/demo.png)\n\
                    | [r](/README.md) | [s](../../crates/sim) | [x](https://a.b) | [own](#a) |\n\n[ref]\n\n[ref]: ../../xtask/tidy.toml\n\
                    `[code](../../a.md)`\n";
        let expected = "# A\n[a](../../docs/guide.md#first) [`docs/guide.md`](../../docs/guide.md) ![p](../../docs/images/demo.png)\n\
                    | [r](../../index.md) | [s](https://github.com/outlast-rs/outlast/blob/main/crates/sim) | [x](https://a.b) | [own](#a) |\n\n[ref]\n\n\
                    [ref]: https://github.com/outlast-rs/outlast/blob/main/xtask/tidy.toml\n`[code](../../a.md)`\n";
        assert_eq!(pages().rewritten("docs/guide/waiting.md", text, false), expected);
    }

    #[test]
    fn api_documentation_beside_the_book_replaces_docs_rs() {
        let text = "[a](https://docs.rs/outlast-client-http)";
        assert_eq!(
            pages().rewritten("docs/api.md", text, true),
            "[a](../api/outlast_client_http/index.html)"
        );
        assert_eq!(pages().rewritten("docs/api.md", text, false), text);
    }
}
