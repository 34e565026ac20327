//! The parts of a query that the rig looks at: its strings, the properties that it filters by, and its order.

/// A property path, such as `/a/b`.
pub(crate) type Path = String;

/// The parts of a query's text that the rig reads. The emulator parses and runs it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    /// Strings in double quotes, also those in `c["a"]`. Azure takes them as strings, the emulator as identifiers.
    pub(crate) double_quoted: Vec<String>,
    /// The properties in the filter.
    pub(crate) filtered: Vec<Path>,
    /// The properties of `ORDER BY`, and whether the order is descending.
    pub(crate) order: Vec<(Path, bool)>,
    /// Whether the query depends on the time of a document, or shows it without the version of the document.
    pub(crate) uses_ts: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Quoted(&'a str),
    Text,
    Sign(char),
}

impl Query {
    pub(crate) fn read(sql: &str) -> Self {
        let tokens = tokens(sql);
        let mut query = Self::default();
        let mut clause = "";
        let (mut shows_ts, mut shows_etag) = (false, false);
        let mut at = 0;
        while at < tokens.len() {
            let (path, next) = path_at(&tokens, at);
            if let Some(path) = path {
                query.uses_ts |= path == "/_ts" && clause != "SELECT";
                shows_ts |= path == "/_ts";
                shows_etag |= path == "/_etag" && clause == "SELECT";
                let quoted = tokens[at..next].iter().filter_map(|token| match token {
                    Token::Quoted(text) => Some(text.to_string()),
                    _ => None,
                });
                query.double_quoted.extend(quoted);
                match clause {
                    "WHERE" if !query.filtered.contains(&path) => query.filtered.push(path),
                    "ORDER" => query.order.push((path, false)),
                    _ => {}
                }
                at = next;
                continue;
            }
            match &tokens[at] {
                Token::Word(word) => {
                    let word = word.to_ascii_uppercase();
                    match word.as_str() {
                        "WHERE" => clause = "WHERE",
                        "ORDER" => clause = "ORDER",
                        "SELECT" => clause = "SELECT",
                        "FROM" | "GROUP" | "OFFSET" => clause = "",
                        "DESC" => {
                            if let Some((_, descending)) = query.order.last_mut() {
                                *descending = true;
                            }
                        }
                        _ => {}
                    }
                }
                // The name in `{"a": 1}` is no string, and the emulator knows it: the SDK writes it to merge orders.
                Token::Quoted(text) if !matches!(tokens.get(at + 1), Some(Token::Sign(':'))) => {
                    query.double_quoted.push(text.to_string());
                }
                _ => {}
            }
            at += 1;
        }
        query.uses_ts |= shows_ts && !shows_etag;
        query
    }
}

/// The path that begins at a token, without the alias of the container, and the first token after it.
fn path_at(tokens: &[Token<'_>], at: usize) -> (Option<Path>, usize) {
    let Token::Word(alias) = &tokens[at] else { return (None, at) };
    if !alias.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        return (None, at);
    }
    let mut path = Path::new();
    let mut next = at + 1;
    loop {
        match tokens.get(next..).unwrap_or_default() {
            [Token::Sign('.'), Token::Word(name), ..] => {
                path = path + "/" + name;
                next += 2;
            }
            [Token::Sign('['), Token::Quoted(name), Token::Sign(']'), ..] => {
                path = path + "/" + name;
                next += 3;
            }
            _ => break,
        }
    }
    (Some(path).filter(|path| !path.is_empty()), next)
}

fn tokens(sql: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let word = |char: char| char.is_alphanumeric() || char == '_' || char == '@' || char == '$';
        let length = match first {
            '\'' | '"' => {
                let end = quoted_length(rest, first);
                let inner = rest.get(1..end.saturating_sub(1)).unwrap_or_default();
                tokens.push(if first == '"' { Token::Quoted(inner) } else { Token::Text });
                end
            }
            _ if word(first) => {
                let end = rest.find(|char| !word(char)).unwrap_or(rest.len());
                tokens.push(Token::Word(&rest[..end]));
                end
            }
            _ => {
                if !first.is_whitespace() {
                    tokens.push(Token::Sign(first));
                }
                first.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    tokens
}

/// The bytes of a quoted text with its quotes. A backslash or a doubled quote goes on.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, char)) = chars.next() {
        if char == '\\' {
            chars.next();
        } else if char == quote {
            match chars.peek() {
                Some((_, next)) if *next == quote => {
                    chars.next();
                }
                _ => return at + quote.len_utf8(),
            }
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_and_orders_are_found() {
        let query = Query::read(
            "SELECT c.x, c._ts FROM c WHERE c.t = 'a.b' AND (c[\"slot\"] >= @lo OR IS_DEFINED(c.d.e)) \
             ORDER BY c.at DESC, c.t ASC OFFSET 1 LIMIT 2",
        );
        assert_eq!(query.filtered, ["/t", "/slot", "/d/e"]);
        assert_eq!(query.order, [("/at".to_string(), true), ("/t".to_string(), false)]);
        assert!(query.uses_ts);
        assert_eq!(query.double_quoted, ["slot"]);
    }

    #[test]
    fn the_time_of_a_document_is_used_unless_it_is_selected_with_its_version() {
        let uses = |sql: &str| Query::read(sql).uses_ts;
        assert!(!uses("SELECT c.id, c._etag, c._ts FROM c WHERE c.t = 'm'"));
        assert!(uses("SELECT c.id, c._ts FROM c"), "the rig knows the time by the version");
        assert!(uses("SELECT c._etag, c._ts FROM c WHERE c._ts > 0"));
        assert!(uses("SELECT c._etag FROM c ORDER BY c._ts"));
        assert!(!uses("SELECT * FROM c"));
    }

    #[test]
    fn double_quoted_strings_are_told_from_names() {
        let strings = |sql: &str| Query::read(sql).double_quoted;
        assert_eq!(strings("SELECT * FROM c WHERE c.id = \"log1\""), ["log1"]);
        assert_eq!(strings("SELECT c._rid, [{\"item\": c.n}] AS orderByItems, c AS payload FROM c"), [""; 0]);
        assert_eq!(strings("SELECT * FROM c WHERE c[\"a b\"] = 'it''s \"x\"'"), ["a b"]);
    }

    #[test]
    fn unfinished_text_does_not_panic() {
        for sql in ["'", "\"", "'\\", "\"é", "c.", "c[\"", "ORDER BY", ""] {
            Query::read(sql);
        }
    }
}
