//! Markdown pages that commands write figures into.

/// Replaces the text between two marks of a page.
pub fn between(page: &str, marks: (&str, &str), text: &str) -> Result<String, String> {
    let (begin, end) = marks;
    let parts = page.split_once(begin).and_then(|(head, rest)| Some((head, rest.split_once(end)?.1)));
    let (head, tail) =
        parts.ok_or_else(|| format!("the page has no `{begin}` that is followed by `{end}`"))?;
    Ok(format!("{head}{begin}\n\n{text}\n{end}{tail}"))
}

/// The number with a comma before each group of three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKS: (&str, &str) = ("<!-- a -->", "<!-- b -->");

    #[test]
    fn only_the_text_between_the_marks_is_replaced() {
        let page = "before\n<!-- a -->\nold\n<!-- b -->\nafter\n";
        let once = between(page, MARKS, "new\n").unwrap();
        assert_eq!(once, "before\n<!-- a -->\n\nnew\n\n<!-- b -->\nafter\n");
        assert_eq!(between(&once, MARKS, "new\n").unwrap(), once, "the second call changes nothing");
    }

    #[test]
    fn a_page_without_marks_is_refused() {
        assert!(between("no marks", MARKS, "").is_err());
        assert!(between("<!-- b --> then <!-- a -->", MARKS, "").is_err());
    }

    #[test]
    fn thousands_are_grouped() {
        let shown = [0, 999, 1_000, 123_456, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "123,456", "1,234,567"]);
    }
}
