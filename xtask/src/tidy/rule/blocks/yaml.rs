//! The part of YAML that pages use: maps and lists by indentation, with values in one line. Anything else is refused.

/// The line of the first mistake, counted from 1, and the mistake.
pub(super) fn mistake(text: &str) -> Option<(usize, String)> {
    // The columns of the maps and lists that are open.
    let mut open: Vec<usize> = vec![0];
    let mut may_open = false;
    for (line, number) in text.lines().zip(1..) {
        let content = without_comment(line).trim_end();
        if content.trim().is_empty() {
            continue;
        }
        let mut column = content.len() - content.trim_start().len();
        let mut item = &content[column..];
        if content[..column].contains('\t') {
            return Some((number, "a tab is no indentation".to_string()));
        }
        while open.last().is_some_and(|last| column < *last) {
            open.pop();
            may_open = false;
        }
        if open.last() != Some(&column) && !may_open {
            return Some((number, "the indentation is that of no list or map that is open".to_string()));
        }
        if open.last() != Some(&column) {
            open.push(column);
        }
        while let Some(rest) = item.strip_prefix("- ") {
            column += item.len() - rest.trim_start().len();
            item = rest.trim_start();
            open.push(column);
        }
        match value(item) {
            Ok(is_empty) => may_open = is_empty,
            Err(message) => return Some((number, message)),
        }
    }
    None
}

/// Whether a map or list may follow in the next lines: the line has a key without a value.
fn value(item: &str) -> Result<bool, String> {
    let is_list = item.starts_with(['[', '"', '\'']);
    let pair = item.split_once(": ").or_else(|| Some((item.strip_suffix(':')?, ""))).filter(|_| !is_list);
    let value = pair.map_or(item, |(_, value)| value).trim();
    let mut closing = Vec::new();
    let mut quote = None;
    for char in value.chars() {
        match char {
            _ if quote.is_some() => quote = quote.filter(|open| *open != char),
            '"' | '\'' if closing.is_empty() && !value.starts_with(['"', '\'', '[', '{']) => {}
            '"' | '\'' => quote = Some(char),
            '[' => closing.push(']'),
            '{' => closing.push('}'),
            ']' | '}' if closing.pop() != Some(char) => return Err(format!("`{char}` closes nothing")),
            _ => {}
        }
    }
    match (quote, closing.pop()) {
        (Some(open), _) => Err(format!("`{open}` is not closed")),
        (_, Some(open)) => Err(format!("`{open}` is missing")),
        _ if pair.is_none() && item.contains(':') && !is_list && !item.contains("://") => {
            Err("a space is missing behind `:`".to_string())
        }
        _ => Ok(pair.is_some() && value.is_empty()),
    }
}

fn without_comment(line: &str) -> &str {
    match line.trim_start().starts_with('#') {
        true => "",
        false => line.split(" #").next().unwrap_or(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_and_lists_are_read() {
        let text = "on:\n  push:\n  schedule:\n    - cron: \"17 3 * * *\"\njobs:\n  a:\n    # no\n    steps:\n      - uses: x/y@v4\n      - name: every one, once\n        run: cargo test # b\n    targets: [{ c: [\"d:1\"] }]\n";
        assert_eq!(mistake(text), None);
    }

    #[test]
    fn a_mistake_is_found_in_its_line() {
        for (text, line) in [
            ("a: 1\n  b: 2\n", 2),
            ("a:\n    b: 1\n  c: 2\n", 3),
            ("a: [1\n", 1),
            ("a: \"x\n", 1),
            ("a:\n  b:1\n", 2),
            ("a: 1]\n", 1),
        ] {
            assert_eq!(mistake(text).map(|(line, _)| line), Some(line), "{text}");
        }
    }
}
