//! The program on the front page compiles and runs.

const README: &str = include_str!("../../../../README.md");
const HELLO: &str = include_str!("../../examples/hello.rs");

#[test]
fn the_front_page_has_the_hello_example_verbatim() {
    // Without the lines for clippy and rustdoc.
    let program = &HELLO[HELLO.find("use outlast").unwrap()..];
    assert!(README.contains(&format!("```rust\n{program}```")), "README.md and examples/hello.rs differ");
    assert!(program.lines().count() < 30, "{} lines", program.lines().count());
}
