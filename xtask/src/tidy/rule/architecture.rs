//! ARCHITECTURE.md stays short, and the pictures of the crates draw the dependencies that the manifests have.
//!
//! A picture of crates is a Mermaid block that begins with `%% crates`. Its lines have the form `a --> b & c`; `-.->` draws
//! optional dependencies. All such pictures together draw every dependency between packages of this workspace, without
//! dev-dependencies, and no other.

use std::collections::BTreeMap;

use crate::metadata::Package;
use crate::tidy::repo::{File, Finding, Repo};

const PAGE: &str = "ARCHITECTURE.md";
const MOST_LINES: usize = 150;
const MOST_CHARS: usize = 120;

const PICTURE: &str = "%% crates";

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = repo.file(PAGE).map(too_long).unwrap_or_default();
    findings.extend(pictures(repo));
    findings
}

fn too_long(page: &File) -> Vec<Finding> {
    let lines = page.text.lines().count();
    let many = (lines > MOST_LINES).then(|| {
        page.finding(
            lines,
            format!("the page has {lines} lines, and may have {MOST_LINES}: move details to docs/internals"),
        )
    });
    let long = (1..).zip(page.text.lines()).filter(|(_, text)| text.chars().count() > MOST_CHARS);
    let long =
        long.map(|(line, _)| page.finding(line, format!("the line has more than {MOST_CHARS} characters")));
    many.into_iter().chain(long).collect()
}

/// A dependency: the folder of the package, and the folder of the package that it uses.
type Edge = (String, String);

/// An arrow, and its place.
struct Drawn<'a> {
    file: &'a File,
    line: usize,
    is_optional: bool,
}

fn pictures(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut drawn: BTreeMap<Edge, Drawn<'_>> = BTreeMap::new();
    for file in repo.with_extension("md") {
        for (line, text) in picture_lines(&file.text) {
            for (edge, is_optional) in arrows(text) {
                let (from, to) = (edge.0.clone(), edge.1.clone());
                if drawn.insert(edge, Drawn { file, line, is_optional }).is_some() {
                    findings.push(
                        file.finding(line, format!("the arrow from `{from}` to `{to}` is drawn twice")),
                    );
                }
            }
        }
    }
    let real = edges(repo);
    for ((from, to), is_optional) in &real {
        let kind = if *is_optional { "optional" } else { "required" };
        match drawn.remove(&(from.clone(), to.clone())) {
            None => {
                let (path, line) = (manifest(repo, from), 1);
                let message = format!("no picture of the crates draws the dependency of `{from}` on `{to}`");
                findings.push(Finding { path, line, message });
            }
            Some(arrow) if arrow.is_optional != *is_optional => {
                let message = format!(
                    "the dependency of `{from}` on `{to}` is {kind}: `-->` is required, `-.->` optional"
                );
                findings.push(arrow.file.finding(arrow.line, message));
            }
            Some(_) => {}
        }
    }
    findings.extend(drawn.into_iter().map(|((from, to), arrow)| {
        arrow.file.finding(arrow.line, format!("`{from}` does not depend on `{to}`"))
    }));
    findings
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

/// The arrows of one line, and whether they are dotted.
fn arrows(line: &str) -> Vec<(Edge, bool)> {
    let split = |arrow: &str| line.split_once(arrow);
    let (from, to, is_optional) = match (split(" -.-> "), split(" --> ")) {
        (Some((from, to)), _) => (from, to, true),
        (None, Some((from, to))) => (from, to, false),
        (None, None) => return Vec::new(),
    };
    to.split(" & ").map(|to| ((from.trim().to_string(), to.trim().to_string()), is_optional)).collect()
}

/// The dependencies between packages of the workspace, and whether each is optional.
fn edges(repo: &Repo) -> BTreeMap<Edge, bool> {
    let folder = |package: &Package| package.dir.rsplit('/').next().unwrap_or_default().to_string();
    let named = |name: &str| repo.packages.iter().find(|package| package.name == name);
    let mut edges = BTreeMap::new();
    for package in &repo.packages {
        for dependency in package.dependencies.iter().filter(|dependency| !dependency.dev) {
            if let Some(used) = named(&dependency.name) {
                edges.insert((folder(package), folder(used)), dependency.optional);
            }
        }
    }
    edges
}

fn manifest(repo: &Repo, folder: &str) -> String {
    let package = repo.packages.iter().find(|package| package.dir.rsplit('/').next() == Some(folder));
    package.map(Package::manifest).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::repo::printed;

    /// `a` uses `b`, and optionally `c`; its tests use `d`.
    fn findings(picture: &str) -> Vec<String> {
        let page = format!(
            "# Page\n```mermaid\n%% crates\ngraph TD\n{picture}\n```\nb --> a\n```text\nc --> a\n```\n"
        );
        let mut repo = Repo::of(&[(PAGE, &page)]);
        repo.packages = vec![
            Package::of(
                "a",
                &[("outlast-b", ""), ("outlast-c", "optional"), ("outlast-d", "dev"), ("outlast-serde", "")],
            ),
            Package::of("b", &[]),
            Package::of("c", &[("outlast-b", "")]),
            Package::of("d", &[]),
        ];
        printed(check(&repo))
    }

    const EXACT: &str = "  a --> b\n  a -.-> c\n  c --> b";

    #[test]
    fn a_picture_with_exactly_the_dependencies_passes() {
        assert_eq!(findings(EXACT), [""; 0]);
    }

    #[test]
    fn a_missing_arrow_is_refused() {
        let found = findings("  a --> b\n  c --> b");
        assert_eq!(
            found,
            ["crates/a/Cargo.toml:1: no picture of the crates draws the dependency of `a` on `c`"]
        );
    }

    #[test]
    fn a_surplus_arrow_is_refused() {
        let found = findings("  a --> b & d\n  a -.-> c\n  c --> b");
        assert_eq!(found, ["ARCHITECTURE.md:5: `a` does not depend on `d`"]);
    }

    #[test]
    fn an_arrow_of_the_wrong_kind_or_drawn_twice_is_refused() {
        let found = findings("  a --> b & c\n  c --> b & b");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found.iter().any(|text| text.contains("the dependency of `a` on `c` is optional")),
            "{found:?}"
        );
        assert!(found.iter().any(|text| text.contains("from `c` to `b` is drawn twice")), "{found:?}");
    }

    #[test]
    fn arrows_of_several_pages_count_together() {
        let page = |arrows: &str| format!("```mermaid\n%% crates\ngraph TD\n{arrows}\n```\n");
        let (first, second) = (page("  a --> b"), page("  c --> b"));
        let mut repo = Repo::of(&[("docs/x.md", &first), (PAGE, &second)]);
        repo.packages = vec![
            Package::of("a", &[("outlast-b", "")]),
            Package::of("b", &[]),
            Package::of("c", &[("outlast-b", "")]),
        ];
        assert_eq!(printed(check(&repo)), [""; 0]);
    }

    #[test]
    fn a_page_with_too_many_lines_or_a_long_line_is_refused() {
        let lines = |count: usize| "x\n".repeat(count);
        let of = |text: &str| printed(check(&Repo::of(&[(PAGE, text), ("docs/long.md", &lines(200))])));
        assert_eq!(of(&lines(MOST_LINES)), [""; 0]);
        assert_eq!(of(&lines(MOST_LINES + 1)).len(), 1);
        assert_eq!(of(&"ä".repeat(MOST_CHARS)), [""; 0]);
        assert_eq!(
            of(&"ä".repeat(MOST_CHARS + 1)),
            ["ARCHITECTURE.md:1: the line has more than 120 characters"]
        );
    }
}
