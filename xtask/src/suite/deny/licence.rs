//! Licence expressions: `MIT OR (Apache-2.0 WITH LLVM-exception AND Zlib)`.

/// Whether these licences are enough to use what has this expression. One that cannot be read is not met.
pub(super) fn is_met(expression: &str, allowed: &[String]) -> bool {
    // Older manifests write `/` for OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any(&mut rest, allowed).is_some_and(|met| met && rest.is_empty())
}

fn any(rest: &mut &[&str], allowed: &[String]) -> Option<bool> {
    let mut met = all(rest, allowed)?;
    while let ["OR", after @ ..] = *rest {
        *rest = after;
        met |= all(rest, allowed)?;
    }
    Some(met)
}

fn all(rest: &mut &[&str], allowed: &[String]) -> Option<bool> {
    let mut met = one(rest, allowed)?;
    while let ["AND", after @ ..] = *rest {
        *rest = after;
        met &= one(rest, allowed)?;
    }
    Some(met)
}

/// A licence with an exception is another one, which would have to be allowed under both names.
fn one(rest: &mut &[&str], allowed: &[String]) -> Option<bool> {
    match *rest {
        ["(", after @ ..] => {
            *rest = after;
            let met = any(rest, allowed)?;
            let [")", after @ ..] = *rest else { return None };
            *rest = after;
            Some(met)
        }
        [licence, "WITH", exception, after @ ..] => {
            *rest = after;
            Some(allowed.contains(&format!("{licence} WITH {exception}")))
        }
        [licence, after @ ..] if !["OR", "AND", "WITH", ")"].contains(licence) => {
            *rest = after;
            Some(allowed.iter().any(|allowed| allowed == licence))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_understood() {
        let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"].map(str::to_string);
        for (expression, expected) in [
            ("MIT", true),
            ("MIT/GPL-3.0", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR Apache-2.0", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
            ("MIT OR GPL-3.0 AND LGPL-2.1", true),
            ("(MIT OR GPL-3.0) AND LGPL-2.1", false),
            ("Apache-2.0 WITH LLVM-exception", false),
            ("Apache-2.0 WITH LLVM-exception OR MIT", true),
            ("", false),
            ("MIT OR", false),
            ("(MIT", false),
            ("MIT GPL-3.0", false),
        ] {
            assert_eq!(is_met(expression, &allowed), expected, "{expression}");
        }
    }
}
