//! Many mutants in one build: a function selects its original body or the body of a mutant when it is called.

use std::fmt::Write as _;
use std::ops::Range;

/// The change of a mutant, with offsets in bytes of its file.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    /// The function that contains the change.
    pub(super) function: Range<usize>,
    pub(super) place: Range<usize>,
    pub(super) replacement: String,
}

/// The environment variable with the number of the selected mutant.
pub(super) const VARIABLE: &str = "OUTLAST_MUTANT";

/// The function that mutated functions of a crate call. It is added to the root of the crate.
pub(super) fn chooser() -> String {
    format!(
        "\npub(crate) fn __mutant() -> usize {{\n    \
         static CHOSEN: std::sync::OnceLock<usize> = std::sync::OnceLock::new();\n    \
         *CHOSEN.get_or_init(|| std::env::var(\"{VARIABLE}\").ok().and_then(|n| n.parse().ok()).unwrap_or(0))\n}}\n"
    )
}

/// A file with inserted mutants.
pub(super) struct Woven {
    pub(super) text: String,
    /// The lines of each mutant, counted from 1, and its number. They assign errors of the compiler to mutants.
    pub(super) lines: Vec<(Range<usize>, usize)>,
}

/// Puts mutants into the text that they are mutants of, each with its number.
pub(super) fn weave(source: &str, mutants: &[(usize, &Spot)]) -> Woven {
    let mut woven = Woven { text: String::new(), lines: Vec::new() };
    let mut copied = 0;
    for function in outermost(mutants) {
        let Some(body) = body(&source[function.clone()]) else { continue };
        let body = function.start + body..function.end;
        woven.text.push_str(&source[copied..body.start]);
        woven.text.push_str("{ match crate::__mutant() {\n");
        for (number, spot) in mutants.iter().filter(|(_, spot)| function.contains(&spot.place.start)) {
            let first = line_of_end(&woven.text);
            let (before, after) = (&source[body.start..spot.place.start], &source[spot.place.end..body.end]);
            let _ = writeln!(woven.text, "{number} => {before}{}{after},", spot.replacement);
            woven.lines.push((first..line_of_end(&woven.text), *number));
        }
        let _ = write!(woven.text, "_ => {}\n}} }}", &source[body.clone()]);
        copied = body.end;
    }
    woven.text.push_str(&source[copied..]);
    woven
}

/// Whether a function can select its body at run time. A `const fn` cannot, and a function that returns `impl Trait`
/// cannot, because each body would have another type.
pub(super) fn can_choose(signature: &str, return_type: &str) -> bool {
    !return_type.contains("impl ") && !signature.contains("const fn ")
}

/// Functions that are in no other, in the order of the file.
fn outermost(mutants: &[(usize, &Spot)]) -> Vec<Range<usize>> {
    let mut functions: Vec<Range<usize>> = mutants.iter().map(|(_, spot)| spot.function.clone()).collect();
    functions.sort_by_key(|function| (function.start, std::cmp::Reverse(function.end)));
    functions.dedup();
    let mut end = 0;
    functions.retain(|function| {
        let is_outside = function.start >= end;
        end = end.max(function.end);
        is_outside
    });
    functions
}

fn line_of_end(text: &str) -> usize {
    text.matches('\n').count() + 1
}

/// Where the body of a function begins: at the first brace that is in no bracket, text or comment.
pub(super) fn body(function: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut rest = function;
    while let Some(char) = rest.chars().next() {
        let skipped = match char {
            '{' if depth == 0 => return Some(function.len() - rest.len()),
            '/' if rest.starts_with("//") => rest.find('\n')?,
            '"' => rest[1..].find('"')? + 2,
            _ => char.len_utf8(),
        };
        match char {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        rest = &rest[skipped..];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "// Two.\nfn f(a: [u8; { 2 }]) -> bool {\n    a[0] == 1\n}\n\nfn g() {\n    fn h() -> bool { !true }\n    h();\n}\n";

    /// The function is found by its first and last words, the place by its text.
    fn spot(function: (&str, &str), place: &str, replacement: &str) -> Spot {
        let start = SOURCE.find(function.0).unwrap();
        let end = start + SOURCE[start..].find(function.1).unwrap() + function.1.len();
        let at = SOURCE.find(place).unwrap();
        Spot { function: start..end, place: at..at + place.len(), replacement: replacement.to_string() }
    }

    #[test]
    fn a_function_chooses_between_its_copies() {
        let (f, h) = (("fn f", "1\n}"), ("fn h", "}"));
        let spots = [spot(f, "==", "!="), spot(h, "!", ""), spot(("fn g", "h();\n}"), "h();", "")];
        let numbered: Vec<(usize, &Spot)> =
            spots.iter().enumerate().map(|(at, spot)| (at + 1, spot)).collect();
        let woven = weave(SOURCE, &numbered);
        let expected = "// Two.\nfn f(a: [u8; { 2 }]) -> bool { match crate::__mutant() {\n\
                        1 => {\n    a[0] != 1\n},\n_ => {\n    a[0] == 1\n}\n} }\n\n\
                        fn g() { match crate::__mutant() {\n\
                        2 => {\n    fn h() -> bool { true }\n    h();\n},\n\
                        3 => {\n    fn h() -> bool { !true }\n    \n},\n\
                        _ => {\n    fn h() -> bool { !true }\n    h();\n}\n} }\n";
        assert_eq!(woven.text, expected);
        assert_eq!(woven.lines, [(3..6, 1), (12..16, 2), (16..20, 3)]);
    }

    #[test]
    fn source_without_mutants_stays_the_same() {
        assert_eq!(weave(SOURCE, &[]).text, SOURCE);
    }

    #[test]
    fn const_functions_and_impl_trait_cannot_select_a_body() {
        assert!(can_choose("pub async fn f(a: impl Into<String>)", "-> String"));
        assert!(!can_choose("fn f()", "-> impl Future<Output = ()>"));
        assert!(!can_choose("pub const fn f()", "-> u64"));
    }
}
