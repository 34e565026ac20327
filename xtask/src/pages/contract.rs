//! Methods and fields of the storage contract, with the first words of their documentation.
//!
//! The reader of the source is small because the source is formatted: an item begins at a known indentation.

use super::Sources;

/// Where the contract is.
const FOLDER: &str = "crates/provider/src/";
/// The files with types of the contract that crates without the contract use too.
const OF_MODEL: [&str; 3] =
    ["crates/model/src/commit.rs", "crates/model/src/dead_letter.rs", "crates/model/src/pending.rs"];

/// A method of a trait.
pub(crate) struct Method {
    pub(crate) name: String,
    has_default: bool,
    doc: String,
}

/// A field of a struct, or a variant of an enum.
struct Member {
    name: String,
    /// Empty for a variant.
    ty: String,
    doc: String,
}

/// The table of the methods of a trait.
pub(super) fn show_methods(name: &str, sources: Sources<'_>) -> Result<String, String> {
    let methods = trait_methods(name, sources);
    if methods.is_empty() {
        return Err(format!("{FOLDER} has no trait `{name}`"));
    }
    let rows = methods.into_iter().map(|Method { name, has_default, doc }| {
        let kind = if has_default { "default" } else { "**required**" };
        format!("| `{name}` | {kind} | {} |\n", first_sentence(&doc))
    });
    Ok("| method | | purpose |\n|---|---|---|\n".to_string() + &rows.collect::<String>())
}

/// The table of the fields of a struct, or of the variants of an enum.
pub(super) fn show_fields(name: &str, sources: Sources<'_>) -> Result<String, String> {
    let found = types(sources).into_iter().find(|(_, ty, _)| ty == name);
    let (keyword, _, members) =
        found.ok_or_else(|| format!("{FOLDER} has no type `{name}` with public fields or variants"))?;
    let head = match keyword {
        "struct" => "| field | type | meaning |\n|---|---|---|\n",
        _ => "| variant | meaning |\n|---|---|\n",
    };
    let rows = members.into_iter().map(|Member { name, ty, doc }| match ty.is_empty() {
        true => format!("| `{name}` | {doc} |\n"),
        false => format!("| `{name}` | `{ty}` | {doc} |\n"),
    });
    Ok(head.to_string() + &rows.collect::<String>())
}

/// The types of the contract that have public fields or variants.
pub(crate) fn described_types(sources: Sources<'_>) -> Vec<String> {
    types(sources).into_iter().map(|(_, name, _)| name).collect()
}

/// The methods of a trait of the contract, in order.
pub(crate) fn trait_methods(name: &str, sources: Sources<'_>) -> Vec<Method> {
    let mut methods = Vec::new();
    for (_, text) in contract(sources) {
        let Some(body) = body_of(text, &format!("pub trait {name}:")) else { continue };
        let (mut doc, mut open) = (Vec::new(), None);
        for line in body {
            if let Some(text) = line.strip_prefix("    ///") {
                doc.push(text.trim());
            }
            let head = line.strip_prefix("    async fn ").or_else(|| line.strip_prefix("    fn "));
            if let Some(name) = head.and_then(|head| head.split(['(', '<']).next()) {
                open = Some((name.to_string(), joined(&std::mem::take(&mut doc))));
            }
            // The signature ends where a body or the next method begins.
            let ends = line.strip_prefix("    ").is_some_and(|line| !line.starts_with(' '));
            if ends && (line.ends_with(';') || line.ends_with('{')) {
                methods.extend(open.take().map(|(name, doc)| {
                    let has_default = line.ends_with('{');
                    Method { name, has_default, doc }
                }));
            }
        }
    }
    methods
}

/// The types of the contract with members: keyword, name and members.
fn types<'a>(sources: Sources<'a>) -> Vec<(&'static str, String, Vec<Member>)> {
    let mut types = Vec::new();
    for (_, text) in contract(sources) {
        for line in text.lines() {
            for keyword in ["struct", "enum"] {
                let Some(head) = line.strip_prefix(&format!("pub {keyword} ")) else { continue };
                let name = head.split([' ', '<', '(', ';']).next().unwrap_or_default();
                let members = body_of(text, line).map(|body| members(&body)).unwrap_or_default();
                if !members.is_empty() {
                    types.push((keyword, name.to_string(), members));
                }
            }
        }
    }
    types
}

fn contract<'a>(sources: Sources<'a>) -> impl Iterator<Item = &'a (&'a str, &'a str)> {
    sources.iter().filter(|(path, _)| path.starts_with(FOLDER) || OF_MODEL.contains(path))
}

/// The lines between the line that begins so and its closing brace.
fn body_of<'a>(text: &'a str, head: &str) -> Option<Vec<&'a str>> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with(head));
    lines.next().filter(|line| line.ends_with('{'))?;
    Some(lines.take_while(|line| *line != "}").collect())
}

/// Public fields, or variants with the names of their fields.
fn members(body: &[&str]) -> Vec<Member> {
    let mut members: Vec<Member> = Vec::new();
    let mut doc = Vec::new();
    for line in body {
        if let Some(text) = line.strip_prefix("    ///") {
            doc.push(text.trim());
            continue;
        }
        let Some(line) = line.strip_prefix("    ") else { continue };
        let field = line.strip_prefix("pub ").and_then(|field| field.trim_end_matches(',').split_once(": "));
        let is_variant = line.starts_with(|char: char| char.is_ascii_uppercase());
        let (name, ty) = match field {
            Some((name, ty)) => (name.to_string(), ty.to_string()),
            None if is_variant => (line.trim_end_matches([',', '{', ' ']).to_string(), String::new()),
            None => continue,
        };
        members.push(Member { name, ty, doc: joined(&std::mem::take(&mut doc)) });
    }
    members
}

/// The first paragraph of a documentation, without links.
fn joined(doc: &[&str]) -> String {
    let paragraph: Vec<&str> = doc.iter().copied().take_while(|line| !line.is_empty()).collect();
    without_links(&paragraph.join(" ")).replace('|', "\\|")
}

/// ``[`A::b`](crate::A::b)`` and ``[`A::b`]`` become `` `A::b` ``.
fn without_links(text: &str) -> String {
    let mut parts = text.split("[`");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (name, rest) = part.split_once("`]").unwrap_or((part, ""));
        let target = rest.strip_prefix('(').and_then(|target| target.split_once(')'));
        out = out + "`" + name + "`" + target.map_or(rest, |(_, behind)| behind);
    }
    out
}

fn first_sentence(text: &str) -> &str {
    let end = text.match_indices(". ").map(|(at, _)| at).find(|at| !text[..*at].ends_with("e.g"));
    end.map_or(text, |end| &text[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRAIT: &str = "\
/// The trait.
pub trait Store: Send {
    /// Name of it. More.
    fn name(&self) -> &str {
        \"unknown\"
    }

    /// Reads as [`Store::name`](crate::Store::name)
    /// does, or [`None`].
    ///
    /// Another paragraph.
    async fn read(
        &self,
        instance: &str,
    ) -> Result<Vec<String>, String>;
}
";

    #[test]
    fn methods_are_listed_with_their_first_sentence() {
        let sources = [("crates/provider/src/a.rs", TRAIT)];
        let expected = "| method | | purpose |\n|---|---|---|\n\
            | `name` | default | Name of it. |\n\
            | `read` | **required** | Reads as `Store::name` does, or `None`. |\n";
        assert_eq!(show_methods("Store", &sources).unwrap(), expected);
        assert!(show_methods("Other", &sources).is_err());
    }

    #[test]
    fn fields_and_variants_are_listed_with_their_meaning() {
        let text = "\
pub struct Info<'a> {
    /// The id.
    pub id: u64,
    /// Which tags.
    #[serde(default)]
    pub tags: Option<&'a Tags>,
    hidden: u64,
}
pub struct Nothing;
pub enum Kind {
    /// Done.
    Done,
    /// Taken by `A|B`.
    Taken {
        /// By whom.
        owner: String,
    },
}
";
        let sources = [
            ("crates/provider/src/a.rs", text),
            ("crates/model/src/a.rs", "pub struct X {\n    pub a: u8,\n}"),
            (OF_MODEL[0], "pub struct Commit {\n    pub a: u8,\n}"),
        ];
        assert_eq!(described_types(&sources), ["Info", "Kind", "Commit"]);
        let info = "| field | type | meaning |\n|---|---|---|\n\
            | `id` | `u64` | The id. |\n| `tags` | `Option<&'a Tags>` | Which tags. |\n";
        assert_eq!(show_fields("Info", &sources).unwrap(), info);
        let kind = "| variant | meaning |\n|---|---|\n| `Done` | Done. |\n| `Taken` | Taken by `A\\|B`. |\n";
        assert_eq!(show_fields("Kind", &sources).unwrap(), kind);
        assert!(show_fields("Nothing", &sources).is_err());
    }
}
