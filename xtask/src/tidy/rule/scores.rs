//! The README quotes figures of the scoreboard by their names, and only those of the code that ships.
//!
//! A quote is the figure, then a comment that names its row and its key: `300,000<!-- score: sim.seeds --> worlds`.

use crate::tidy::markdown;
use crate::tidy::repo::{Finding, Repo};

const PAGE: &str = "README.md";

pub(in crate::tidy) fn check(repo: &Repo) -> Vec<Finding> {
    let Some(page) = repo.file(PAGE) else { return Vec::new() };
    let files: Vec<(&str, &str)> =
        repo.with_extension("json").map(|file| (file.path.as_str(), file.text.as_str())).collect();
    let lines = markdown::prose(&page.text);
    let found = lines.flat_map(|(line, text)| {
        outlast_prove::mistakes(text, &files, &repo.code).into_iter().map(move |message| (line, message))
    });
    found.map(|(line, message)| page.finding(line, message)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::repo::printed;

    const FIGURES: &str =
        r#"{"commit": "a", "date": "b", "code": {"engine": "1"}, "figures": {"seeds": 7000}}"#;

    fn findings(page: &str, engine: &str) -> Vec<String> {
        let mut repo = Repo::of(&[(PAGE, page), ("testdata/scoreboard/sim.json", FIGURES)]);
        repo.code.insert("engine".to_string(), engine.to_string());
        printed(check(&repo))
    }

    #[test]
    fn the_readme_quotes_figures_by_name_and_of_unchanged_code() {
        let quote = "# Outlast\n7,000<!-- score: sim.seeds --> worlds";
        assert_eq!(findings(quote, "1"), [""; 0]);
        assert!(findings(quote, "2")[0].starts_with("README.md:2: the shipped code of `sim` has changed"));
        assert_eq!(findings(&quote.replace("7,000", "8,000"), "1"), ["README.md:2: `sim.seeds` is 7,000"]);
        assert_eq!(findings("7,000 worlds", "1").len(), 1);
        assert_eq!(findings("```\n7,000 worlds\n```", "1"), [""; 0]);
    }
}
