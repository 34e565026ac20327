//! No ignored tests, and no macros of unfinished code: an ignored test checks nothing, and `todo!` panics.

use crate::tidy::repo::{Finding, Repo};

const LEFTOVERS: &[&str] = &["#[ignore", "todo!(", "unimplemented!(", "dbg!("];

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in repo.rust() {
        for leftover in LEFTOVERS {
            let found = source.find(leftover);
            findings.extend(
                found.map(|at| file.finding(source.line(at), format!("`{leftover}` is unfinished work"))),
            );
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_tests_and_unfinished_code_are_refused() {
        let text =
            "#[ignore = \"slow\"]\nfn a() { todo!() }\nfn b() { unimplemented!(\"x\") }\nfn c() { dbg!(1) }";
        let lines: Vec<usize> =
            check(&Repo::of(&[("a.rs", text)])).into_iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [1, 2, 3, 4]);
    }

    #[test]
    fn comments_and_literals_are_not_checked() {
        let text = "/// `todo!()`\nfn a() { f(\"dbg!(\"); #[ignored] my_todo!() }";
        assert_eq!(check(&Repo::of(&[("a.rs", text)])).len(), 0);
    }
}
