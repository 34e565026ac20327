//! Links, headings and prose of a Markdown file.

use std::collections::BTreeMap;
use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// A link, and its line counted from 1.
#[derive(Debug, PartialEq)]
pub(super) struct Link {
    pub(super) line: usize,
    pub(super) target: String,
}

fn parse(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES)
}

fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// The lines outside of code blocks, counted from 1.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let blocks =
        parse(text).into_offset_iter().filter(|(event, _)| matches!(event, Event::Start(Tag::CodeBlock(_))));
    let code: Vec<Range<usize>> = blocks
        .map(|(_, range)| line_of(text, range.start)..line_of(text, range.end.saturating_sub(1)) + 1)
        .collect();
    (1..).zip(text.lines()).filter(move |(line, _)| !code.iter().any(|block| block.contains(line)))
}

/// Every link and image, and the targets of reference definitions, in the order of their lines.
pub(super) fn links(text: &str) -> Vec<Link> {
    let parser = parse(text);
    let definitions = parser.reference_definitions().iter();
    let mut found: Vec<(usize, String)> =
        definitions.map(|(_, definition)| (definition.span.start, definition.dest.to_string())).collect();
    for (event, range) in parser.into_offset_iter() {
        if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event {
            found.push((range.start, dest_url.to_string()));
        }
    }
    found.sort();
    let links = found.into_iter().filter(|(_, target)| !target.is_empty());
    links.map(|(offset, target)| Link { line: line_of(text, offset), target }).collect()
}

/// The anchors that GitHub gives to the headings of a file, and the ids of its HTML elements.
pub(super) fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = Vec::new();
    let mut heading: Option<String> = None;
    for event in parse(text) {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
            (Event::End(TagEnd::Heading(_)), Some(title)) => {
                let slug = slug(title);
                let count = seen.entry(slug.clone()).or_default();
                anchors.push(if *count == 0 { slug } else { format!("{slug}-{count}") });
                *count += 1;
                heading = None;
            }
            (Event::Text(part) | Event::Code(part), Some(title)) => title.push_str(&part),
            (Event::Html(html) | Event::InlineHtml(html), _) => {
                for attribute in ["id=\"", "name=\""] {
                    let ids = html.split(attribute).skip(1).filter_map(|rest| rest.split('"').next());
                    anchors.extend(ids.map(str::to_string));
                }
            }
            _ => {}
        }
    }
    anchors
}

/// GitHub's rule: lower case, hyphens for spaces, and only letters, digits, `-` and `_`.
fn slug(title: &str) -> String {
    let kept = |char: &char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_');
    title.to_lowercase().chars().filter(kept).map(|char| if char == ' ' { '-' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str) -> Vec<String> {
        links(text).into_iter().map(|link| format!("{}:{}", link.line, link.target)).collect()
    }

    #[test]
    fn links_in_code_are_not_found() {
        assert_eq!(
            targets("[a](b.md) ![c](d.png \"title\")\n[e](<f g.md>)"),
            ["1:b.md", "1:d.png", "2:f g.md"]
        );
        assert_eq!(targets("[a](b(c).md)\n\n[ref]: d.md \"t\"\n\n[^note]: text"), ["1:b(c).md", "3:d.md"]);
        assert_eq!(targets("`[a](b)` ``[c](`d)`` [e](f)"), ["1:f"]);
        assert_eq!(targets("```text\n[a](b)\n```\n~~~~\n```\n[c](d)\n~~~~\n[e](f)"), ["8:f"]);
    }

    #[test]
    fn headings_and_html_ids_are_anchors() {
        let text =
            "# A `b()`, c!\n## Same\n## Same\n### [Link](x.md) here\n```\n# no\n```\n#no\n<a id=\"own\"></a>";
        assert_eq!(anchors(text), ["a-b-c", "same", "same-1", "link-here", "own"]);
    }
}
