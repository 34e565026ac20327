//! The target of a relative link in Markdown is a file of the repository, and its anchor is a heading of that file.

use crate::tidy::markdown::{self, Link};
use crate::tidy::repo::{File, Finding, Repo};

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repo.with_extension("md") {
        for Link { line, target } in markdown::links(&file.text) {
            findings.extend(dead(repo, file, &target).map(|message| file.finding(line, message)));
        }
    }
    findings
}

/// The reason why a link has no target.
fn dead(repo: &Repo, file: &File, target: &str) -> Option<String> {
    if is_external(target) {
        return None;
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let path = path.split('?').next().unwrap_or_default().replace("%20", " ");
    let Some(path) = resolve(&file.path, &path) else {
        return Some(format!("`{target}` is outside of the repository"));
    };
    if !repo.has(&path) {
        return Some(format!("`{target}`: there is no `{path}`"));
    }
    let anchor = anchor.filter(|_| path.ends_with(".md"))?;
    let headings = markdown::anchors(&repo.file(&path)?.text);
    (!headings.iter().any(|heading| heading == anchor))
        .then(|| format!("`{target}`: there is no heading `#{anchor}` in `{path}`"))
}

/// Whether the target has a scheme, for example `https:` or `mailto:`.
fn is_external(target: &str) -> bool {
    let scheme = target.split_once(':').map(|(scheme, _)| scheme);
    target.starts_with("//")
        || scheme.is_some_and(|scheme| scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)))
}

/// The path relative to the root, or `None` if it is outside of the repository.
fn resolve(from: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    match path {
        "" => {}
        absolute if absolute.starts_with('/') => parts.clear(),
        _ => drop(parts.pop()),
    }
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match part {
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::repo::printed;

    fn findings(text: &str) -> Vec<String> {
        let others = [("docs/guide.md", "# Guide\n## First steps\n"), ("src/x.rs", ""), ("README.md", "# R")];
        printed(check(&Repo::of(&[&others[..], &[("docs/a.md", text)]].concat())))
    }

    #[test]
    fn links_without_a_target_are_refused() {
        assert_eq!(findings("\n[a](gone.md)"), ["docs/a.md:2: `gone.md`: there is no `docs/gone.md`"]);
        assert_eq!(findings("[a](../../b.md)"), ["docs/a.md:1: `../../b.md` is outside of the repository"]);
        let anchor = ["docs/a.md:1: `guide.md#last`: there is no heading `#last` in `docs/guide.md`"];
        assert_eq!(findings("[a](guide.md#last)"), anchor);
        assert_eq!(findings("[a](#own)").len(), 1);
        assert_eq!(findings("[a]: src/x.rs").len(), 1);
        assert_eq!(findings("[a](../sr)").len(), 1, "a part of a name is no folder");
    }

    #[test]
    fn links_with_a_target_pass() {
        let own = "# Own\n[a](guide.md#first-steps) [b](#own) [c](./guide.md) [d](/README.md)";
        assert_eq!(findings(own), [""; 0]);
        assert_eq!(findings("[a](../src) [b](../src/x.rs#L3) [c](../)"), [""; 0]);
        assert_eq!(
            findings("[a](https://a.b/c.md) [b](mailto:a@b.c) `[c](gone.md)`\n```\n[d](gone.md)\n```"),
            [""; 0]
        );
    }
}
