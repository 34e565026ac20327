//! ARCHITECTURE.md stays short, and the pictures of the crates draw the dependencies that the manifests have.
//!
//! A picture of crates is a Mermaid block that begins with `%% crates`. Its lines have the form `a --> b & c`; `-.->` draws
//! optional dependencies. All such pictures together draw every dependency between packages of this workspace, without
//! dev-dependencies, and no other.

use std::collections::BTreeMap;

use crate::metadata;
use crate::tidy::repo::{File, Finding, Repo};

const PAGE: &str = "ARCHITECTURE.md";
const MOST_LINES: usize = 150;
const MOST_CHARS: usize = 120;
const PICTURE: &str = "%% crates";

/// The folder of the package, the folder of the package that it uses, and the arrow of the dependency.
type Edge<'a> = (&'a str, &'a str, &'static str);
const ARROWS: [&str; 2] = [" --> ", " -.-> "];

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = repo.file(PAGE).map(too_long).unwrap_or_default();
    let mut real = edges(repo);
    for file in repo.with_extension("md") {
        for (line, text) in picture_lines(&file.text) {
            for (from, to, arrow) in arrows(text) {
                if real.remove(&(from, to, arrow)).is_none() {
                    let message =
                        format!("`{from}{arrow}{to}` is drawn twice, or is no dependency of this kind");
                    findings.push(file.finding(line, message));
                }
            }
        }
    }
    findings.extend(real.into_iter().map(|((from, to, arrow), path)| {
        let message = format!("no picture of the crates draws `{from}{arrow}{to}`");
        Finding { path, line: 1, message }
    }));
    findings
}

/// The findings about the length of the page and of its lines.
fn too_long(page: &File) -> Vec<Finding> {
    let lines = page.text.lines().count();
    let many = (lines > MOST_LINES).then(|| {
        let message =
            format!("the page has {lines} lines, and may have {MOST_LINES}: move details to docs/internals");
        page.finding(lines, message)
    });
    let long = (1..).zip(page.text.lines()).filter(|(_, text)| text.chars().count() > MOST_CHARS);
    let long =
        long.map(|(line, _)| page.finding(line, format!("the line has more than {MOST_CHARS} characters")));
    many.into_iter().chain(long).collect()
}

/// The numbered lines of the pictures of crates in a page.
fn picture_lines(text: &str) -> Vec<(usize, &str)> {
    let (mut lines, mut is_inside, mut previous) = (Vec::new(), false, "");
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        is_inside = (is_inside && line != "```") || (previous == "```mermaid" && line == PICTURE);
        if is_inside {
            lines.push((number, line));
        }
        previous = line;
    }
    lines
}

fn arrows(line: &str) -> impl Iterator<Item = Edge<'_>> {
    let found = ARROWS.into_iter().filter_map(move |arrow| Some((arrow, line.split_once(arrow)?)));
    found.flat_map(|(arrow, (from, to))| to.split(" & ").map(move |to| (from.trim(), to.trim(), arrow)))
}

/// The dependencies between packages of the workspace, with the manifests that declare them.
fn edges(repo: &Repo) -> BTreeMap<Edge<'_>, String> {
    let mut edges = BTreeMap::new();
    for package in &repo.packages {
        for dependency in metadata::shipped(package) {
            if let Some(used) = repo.packages.iter().find(|package| package.name == dependency.name) {
                let arrow = ARROWS[usize::from(dependency.optional)];
                let edge = (metadata::folder(package), metadata::folder(used), arrow);
                edges.insert(edge, metadata::manifest(package));
            }
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::repo::printed;

    /// `a` uses `b`, and optionally `c`, which uses `b`; the tests of `a` use `d`.
    fn findings(pictures: &[&str]) -> Vec<String> {
        let page =
            |arrows: &&str| format!("# Page\n```mermaid\n%% crates\ngraph TD\n{arrows}\n```\nb --> a\n");
        let pages: Vec<String> = pictures.iter().map(page).collect();
        let names = [PAGE, "docs/x.md"];
        let files: Vec<(&str, &str)> = names.into_iter().zip(pages.iter().map(String::as_str)).collect();
        let mut repo = Repo::of(&files);
        let a = ["outlast-b", "outlast-c optional", "outlast-d dev", "outlast-serde"];
        repo.packages = [("a", &a[..]), ("b", &[]), ("c", &["outlast-b"]), ("d", &[])]
            .map(|(folder, dependencies)| metadata::sample(folder, dependencies))
            .to_vec();
        printed(check(&repo))
    }

    #[test]
    fn the_pictures_of_all_pages_draw_exactly_the_dependencies() {
        assert_eq!(findings(&["  a --> b\n  a -.-> c\n  c --> b"]), [""; 0]);
        assert_eq!(findings(&["  a --> b", "  a -.-> c\n  c --> b"]), [""; 0]);
        let missing = findings(&["  a --> b\n  c --> b"]);
        assert_eq!(missing, ["crates/a/Cargo.toml:1: no picture of the crates draws `a -.-> c`"]);
        let surplus = "is drawn twice, or is no dependency of this kind";
        let none = findings(&["  a --> b & d\n  a -.-> c\n  c --> b"]);
        assert_eq!(none, [format!("{PAGE}:5: `a --> d` {surplus}")]);
        let twice = findings(&["  a --> b\n  a -.-> c\n  c --> b & b"]);
        assert_eq!(twice, [format!("{PAGE}:7: `c --> b` {surplus}")]);
        let wrong_kind = findings(&["  a --> b & c\n  c --> b"]);
        assert_eq!(wrong_kind.len(), 2, "{wrong_kind:?}");
        assert_eq!(wrong_kind[0], format!("{PAGE}:5: `a --> c` {surplus}"));
    }

    #[test]
    fn a_page_with_too_many_lines_or_a_long_line_is_refused() {
        let lines = |count: usize| "x\n".repeat(count);
        let of = |text: &str| printed(check(&Repo::of(&[(PAGE, text), ("docs/long.md", &lines(200))])));
        assert_eq!(of(&lines(MOST_LINES)), [""; 0]);
        assert_eq!(of(&lines(MOST_LINES + 1)).len(), 1);
        assert_eq!(of(&"ä".repeat(MOST_CHARS)), [""; 0]);
        let long = of(&"ä".repeat(MOST_CHARS + 1));
        assert_eq!(long, ["ARCHITECTURE.md:1: the line has more than 120 characters"]);
    }
}
