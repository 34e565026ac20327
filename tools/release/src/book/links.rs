//! The links of the built book: each leads to a file of it, and each anchor to an element of that file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Pages that mdBook makes itself, with links relative to the root of a web site, or with all pages in one.
const MADE: [&str; 2] = ["404.html", "print.html"];

/// The links without a target, one line each. Pages in the folder `api` are targets only: rustdoc checks its own links.
pub(super) fn dead(root: &Path, api: &str) -> Result<Vec<String>, String> {
    let mut files = BTreeMap::new();
    read(root, "", &mut files).map_err(|error| format!("{}: {error}", root.display()))?;
    let checked = files.iter().filter(|(path, _)| !MADE.contains(&path.as_str()) && !is_below(path, api));
    let mut dead = Vec::new();
    for (path, page) in checked {
        let links = page.links.iter().filter(|link| !is_external(link) && !leads(&files, path, link));
        dead.extend(links.map(|link| format!("{path}: `{link}` has no target")));
    }
    Ok(dead)
}

/// The links and the ids of elements in a file. Both are empty for a file that is no page.
#[derive(Default)]
struct Page {
    links: BTreeSet<String>,
    ids: BTreeSet<String>,
}

/// Reads the files of a folder and of its subfolders.
fn read(folder: &Path, prefix: &str, files: &mut BTreeMap<String, Page>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            read(&entry.path(), &format!("{path}/"), files)?;
        } else if path.ends_with(".html") {
            files.insert(path, page(&fs::read_to_string(entry.path())?));
        } else {
            files.insert(path, Page::default());
        }
    }
    Ok(())
}

/// The links and the ids of a page.
fn page(html: &str) -> Page {
    let values = |attribute: &str| -> BTreeSet<String> {
        let values = html.split(attribute).skip(1).filter_map(|rest| rest.split('"').next());
        values.map(|value| value.replace("&amp;", "&")).collect()
    };
    let links = values(" href=\"").into_iter().chain(values(" src=\"")).collect();
    Page { links, ids: values(" id=\"") }
}

fn is_external(link: &str) -> bool {
    let scheme = link.split(['/', '#']).next().unwrap_or_default();
    scheme.contains(':') || link.starts_with("//")
}

/// Whether a link of a file leads to a file and to an element in it.
fn leads(files: &BTreeMap<String, Page>, from: &str, link: &str) -> bool {
    let (path, anchor) = link.split_once('#').map_or((link, ""), |(path, anchor)| (path, anchor));
    let path = path.split('?').next().unwrap_or_default();
    let target = match path {
        "" => Some(from.to_string()),
        path => super::pages::resolve(from, &decoded(path)),
    };
    let Some(target) = target else { return false };
    let index = if target.is_empty() { "index.html".to_string() } else { format!("{target}/index.html") };
    let page = files.get(&target).or_else(|| files.get(&index));
    page.is_some_and(|page| anchor.is_empty() || page.ids.contains(&decoded(anchor)))
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_without_a_file_or_an_element_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "docs/a.html",
            "<h1 id=\"t%C3%BCr\"><h2 id=\"tür\"><a href=\"#t%C3%BCr\"><a href=\"b.html#two\"><a href=\"../index.html\">\
             <img src=\"images/x.png\"><a href=\"https://a.b/gone.html\"><a href=\"../api/outlast/\">",
        );
        write("docs/b.html", "<p id=\"one\"><a href=\"../../outside.html\"><a href=\"b.html?x#one\">");
        write("docs/images/x.png", "");
        write("api/outlast/index.html", "<a href=\"gone.html\">");
        write("404.html", "<a href=\"gone.html\">");
        assert_eq!(
            dead(folder.path(), "api").unwrap(),
            [
                "docs/a.html: `../index.html` has no target",
                "docs/a.html: `b.html#two` has no target",
                "docs/b.html: `../../outside.html` has no target",
            ]
        );
    }
}
