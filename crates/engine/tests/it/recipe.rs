//! The recipe for a new operation in CONTRIBUTING.md, compared with the code.

use std::path::Path;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The first code block of this language in the section about operations.
fn block(language: &str) -> String {
    let page = read("CONTRIBUTING.md");
    let section = page.split("## Add a durable operation\n").nth(1).expect("the page has the section");
    let section = section.split("\n## ").next().unwrap();
    let begin = format!("```{language}\n");
    let block = section.split(&begin).nth(1).expect("the section has the block");
    block.split("\n```").next().unwrap().to_string()
}

#[test]
fn context_lines_of_the_recipe_are_in_the_named_files() {
    let (mut path, mut text, mut files) = (String::new(), String::new(), 0);
    for line in block("diff").lines() {
        if let Some(named) = line.strip_prefix("+++ ") {
            (path, text) = (named.to_string(), read(named));
            files += 1;
        } else if let Some(context) = line.strip_prefix(' ') {
            assert!(text.lines().any(|known| known == context), "{path} has no line `{context}`");
        }
    }
    assert_eq!(files, 6, "the recipe touches six files with lists");
}

#[test]
fn methods_of_the_recipe_are_methods_of_the_traits() {
    let operation = read("crates/engine/src/op/mod.rs");
    let code = block("rust");
    let (_, implementations) =
        code.split_once("impl Operation for ").expect("the recipe implements the trait of operations");
    assert!(implementations.contains("impl HasOutcome for "), "its outcome needs the second trait");
    let signatures: Vec<&str> = implementations.lines().filter(|line| line.starts_with("    fn ")).collect();
    assert_eq!(signatures.len(), 8, "{signatures:?}");
    for signature in signatures {
        let name = signature.trim().split('(').next().unwrap();
        assert!(operation.contains(&format!("    {name}(")), "the trait has no `{name}`");
    }
}
