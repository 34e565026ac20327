//! Links and headings of a Markdown file.

use std::collections::BTreeMap;

/// A link and where it is.
#[derive(Debug, PartialEq)]
pub(super) struct Link {
    pub(super) line: usize,
    pub(super) target: String,
}

/// The lines outside of code blocks, counted from 1.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let marks = fence_of(line);
        match (fence, marks) {
            (None, Some(marks)) => fence = Some(marks),
            (None, None) => return Some((index + 1, line)),
            // A fence is closed by one at least as long, with nothing behind it.
            (Some(open), Some(marks)) if marks.starts_with(open) && line.trim() == marks => fence = None,
            (Some(_), _) => {}
        }
        None
    })
}

fn fence_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let marks = &line[..line.len() - line.trim_start_matches(mark).len()];
    // Backticks that close on the same line are code in a sentence.
    (marks.len() >= 3 && !(mark == '`' && line[marks.len()..].contains('`'))).then_some(marks)
}

/// Every link and image, and the targets of reference definitions.
pub(super) fn links(text: &str) -> Vec<Link> {
    let mut links = Vec::new();
    for (line, prose) in prose(text) {
        let prose = without_code(prose);
        let inline = prose.match_indices("](").filter_map(|(at, _)| inline_target(&prose[at + 2..]));
        let targets = inline.chain(definition(&prose));
        links.extend(targets.filter(|target| !target.is_empty()).map(|target| Link { line, target }));
    }
    links
}

/// What is between the parentheses, without a title.
fn inline_target(text: &str) -> Option<String> {
    let mut depth = 1_usize;
    let end = text.char_indices().find(|(_, char)| {
        match char {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    Some(destination(&text[..end?.0]))
}

/// `[name]: target`, but not the footnote `[^name]: text`.
fn definition(line: &str) -> Option<String> {
    let rest = line.trim_start().strip_prefix('[').filter(|rest| !rest.starts_with('^'))?;
    let (_, target) = rest.split_once("]: ")?;
    Some(destination(target))
}

fn destination(text: &str) -> String {
    let text = text.trim();
    match text.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        Some((inside, _)) => inside.to_string(),
        None => text.split_whitespace().next().unwrap_or_default().to_string(),
    }
}

/// The line with its code spans blanked.
fn without_code(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(start) = rest.find('`') {
        let after = rest[start..].trim_start_matches('`');
        let marks = &rest[start..rest.len() - after.len()];
        out.push_str(&rest[..start]);
        // Unclosed backticks are text.
        rest = after.find(marks).map_or(after, |end| &after[end + marks.len()..]);
        out.push(' ');
    }
    out + rest
}

/// The anchors that a renderer gives to the headings of a file, and those that it spells out in HTML.
pub(super) fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = Vec::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        let level = line.len() - title.len();
        if (1..=6).contains(&level) && title.starts_with(' ') {
            let slug = slug(title);
            let count = seen.entry(slug.clone()).or_default();
            anchors.push(if *count == 0 { slug.clone() } else { format!("{slug}-{count}") });
            *count += 1;
        }
        for attribute in ["id=\"", "name=\""] {
            let ids = line.split(attribute).skip(1).filter_map(|rest| rest.split('"').next());
            anchors.extend(ids.map(str::to_string));
        }
    }
    anchors
}

/// GitHub's rule: lower case, hyphens for spaces, nothing else but letters, digits, `-` and `_`.
fn slug(title: &str) -> String {
    let kept = |char: &char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_');
    let text = link_texts(title.trim().trim_end_matches('#').trim_end());
    text.to_lowercase().chars().filter(kept).map(|char| if char == ' ' { '-' } else { char }).collect()
}

/// Links reduced to what is read of them.
fn link_texts(title: &str) -> String {
    let mut out = String::new();
    let mut rest = title;
    while let Some((before, after)) = rest.split_once("](") {
        out.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str) -> Vec<String> {
        links(text).into_iter().map(|link| format!("{}:{}", link.line, link.target)).collect()
    }

    #[test]
    fn links_are_found_in_prose_only() {
        assert_eq!(
            targets("[a](b.md) ![c](d.png \"title\")\n[e](<f g.md>)"),
            ["1:b.md", "1:d.png", "2:f g.md"]
        );
        assert_eq!(targets("[a](b(c).md)\n[ref]: d.md \"t\"\n[^note]: text"), ["1:b(c).md", "2:d.md"]);
        assert_eq!(targets("`[a](b)` ``[c](`d)`` [e](f)"), ["1:f"]);
        assert_eq!(targets("```text\n[a](b)\n```\n~~~~\n```\n[c](d)\n~~~~\n[e](f)"), ["8:f"]);
    }

    #[test]
    fn headings_become_anchors() {
        let text =
            "# A `b()`, c!\n## Same\n## Same\n### [Link](x.md) here\n```\n# no\n```\n#no\n<a id=\"own\"></a>";
        assert_eq!(anchors(text), ["a-b-c", "same", "same-1", "link-here", "own"]);
    }
}
