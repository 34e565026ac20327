//! Tests do not sleep: a test waits for the event that it checks.

use crate::tidy::repo::{Finding, Repo};

/// These packages test effects of real time, or sleep in virtual time. The programs of `ui` do not compile.
const EXEMPT: &[&str] =
    &["crates/conformance/", "crates/chaos/", "crates/testing/", "crates/author/tests/ui/"];

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in repo.rust() {
        if EXEMPT.iter().any(|folder| file.path.starts_with(folder)) {
            continue;
        }
        for at in source.find("sleep(").filter(|at| file.is_test_at(*at)) {
            findings
                .push(file.finding(source.line(at), "a test waits for the event itself, or moves a clock"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Repo::of(&[(path, text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_sleep_in_a_test_is_refused() {
        assert_eq!(lines("crates/a/tests/it/main.rs", "fn f() {\n  tokio::time::sleep(d).await;\n}"), [2]);
        let unit = "fn a() { sleep(x) }\n#[cfg(test)]\nmod tests {\n  fn f() { std::thread::sleep(d) }\n}";
        assert_eq!(lines("crates/a/src/a.rs", unit), [4]);
    }

    #[test]
    fn exempt_packages_may_sleep() {
        assert_eq!(lines("crates/chaos/tests/it/main.rs", "sleep(d)"), [0; 0]);
        assert_eq!(lines("crates/conformance/tests/it/main.rs", "sleep(d)"), [0; 0]);
        assert_eq!(lines("crates/a/tests/it/main.rs", "no_sleep(d); // sleep(d)"), [0; 0]);
    }
}
