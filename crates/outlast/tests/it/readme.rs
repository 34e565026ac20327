//! The front page shows a program that runs.

const README: &str = include_str!("../../../../README.md");
const HELLO: &str = include_str!("../../examples/hello.rs");

#[test]
fn the_front_page_has_the_hello_example_word_for_word() {
    // Without what clippy and rustdoc want to hear.
    let program = &HELLO[HELLO.find("use outlast").unwrap()..];
    assert!(
        README.contains(&format!("```rust\n{program}```")),
        "README.md and examples/hello.rs have come apart"
    );
    assert!(program.lines().count() < 30, "{} lines", program.lines().count());
}
