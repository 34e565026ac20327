//! The code blocks of Markdown pages, and the command lines in them.

/// A fenced code block.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// The line of its fence, counted from 1.
    pub line: usize,
    /// The words after the fence: `toml`, or `rust,no_run`.
    pub language: String,
    /// Its lines, without the indentation of the fence.
    pub text: String,
}

/// A command line of a block.
#[derive(Debug, PartialEq, Eq)]
pub struct Call {
    /// Its first line in the page, counted from 1.
    pub line: usize,
    /// Its words, without the variables that are set before the command.
    pub words: Vec<String>,
}

/// The code blocks of a page.
pub fn of(page: &str) -> Vec<Block> {
    let lines: Vec<&str> = page.lines().collect();
    let mut blocks = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let fence = lines[at].trim_start();
        let Some(language) = fence.strip_prefix("```").filter(|rest| !rest.contains('`')) else {
            at += 1;
            continue;
        };
        let indent = lines[at].len() - fence.len();
        let inside: Vec<&str> =
            lines[at + 1..].iter().copied().take_while(|line| line.trim() != "```").collect();
        let inner = inside.iter().map(|line| line.get(indent..).unwrap_or_default());
        let text = inner.map(|line| format!("{line}\n")).collect();
        blocks.push(Block { line: at + 1, language: language.trim().to_string(), text });
        at += inside.len() + 2;
    }
    blocks
}

impl Block {
    /// The commands of a block: the lines after a prompt `$`, or, in a block of `sh`, all lines. The lines of a text that a command
    /// reads from its standard input are no commands.
    pub fn calls(&self) -> Vec<Call> {
        let has_prompts = self.language == "console";
        if !has_prompts && self.language != "sh" {
            return Vec::new();
        }
        let mut calls = Vec::new();
        let mut lines = self.text.lines().zip(self.line + 1..);
        while let Some((line, number)) = lines.next() {
            let start = if has_prompts { line.strip_prefix("$ ") } else { Some(line) };
            let Some(start) = start else { continue };
            let mut command = start.to_string();
            while let Some(open) = command.strip_suffix('\\') {
                command = format!("{open} {}", lines.next().map_or("", |(next, _)| next));
            }
            calls.extend(commands(&command).into_iter().map(|words| Call { line: number, words }));
        }
        calls
    }
}

/// The commands of a line of a shell, each as its words.
pub fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands: Vec<Vec<String>> = vec![Vec::new()];
    for word in words(line) {
        let last = commands.len() - 1;
        match word {
            Word::Separator => commands.push(Vec::new()),
            Word::Text(text) if commands[last].is_empty() && is_assignment(&text) => {}
            Word::Text(text) => commands[last].push(text),
        }
    }
    commands.retain(|words| !words.is_empty());
    for words in &mut commands {
        // What follows is the name of a file.
        if let Some(at) = words.iter().position(|word| matches!(word.as_str(), ">" | ">>" | "<" | "2>")) {
            words.truncate(at);
        }
    }
    commands
}

enum Word {
    Text(String),
    /// `|`, `&&`, `||`, `;` or `&`.
    Separator,
}

fn words(line: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match (quote, char) {
            (Some(open), _) if open == char => quote = None,
            (Some('"') | None, '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, '\'' | '"') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ' | '\t') => words.extend(word.take().map(finished)),
            (None, ';') => {
                words.extend(word.take().map(finished));
                words.push(Word::Separator);
            }
            _ => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word.map(finished));
    words
}

fn finished(word: String) -> Word {
    match word.as_str() {
        "|" | "&&" | "||" | "&" => Word::Separator,
        _ => Word::Text(word),
    }
}

/// `NAME=value` before a command.
fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.chars().all(|char| char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_')
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_the_line_of_their_fence_and_no_indentation() {
        let page = "a\n\n```toml\nb = 1\n```\n- c\n  ```sh\n  d\n  ```\n`` ` ``\n";
        let block = |line, language: &str, text: &str| Block {
            line,
            language: language.to_string(),
            text: text.to_string(),
        };
        assert_eq!(of(page), [block(3, "toml", "b = 1\n"), block(7, "sh", "d\n")]);
    }

    #[test]
    fn commands_are_read_as_a_shell_reads_them() {
        let read =
            |line: &str| -> Vec<String> { commands(line).iter().map(|words| words.join("|")).collect() };
        assert_eq!(read("outlast a --b 'c d' # e"), ["outlast|a|--b|c d"]);
        assert_eq!(read("A=1 B=x cargo run -- \"a \\\" b\" > c.txt"), ["cargo|run|--|a \" b"]);
        assert_eq!(read("a b; c && d | e f|g"), ["a|b", "c", "d", "e|f|g"]);
        assert_eq!(read("  # nothing"), [""; 0]);
    }

    #[test]
    fn a_console_has_commands_after_prompts_and_a_script_in_all_lines() {
        let lines = |text: &str| -> Vec<(usize, String)> {
            let calls = of(text).iter().flat_map(Block::calls).collect::<Vec<_>>();
            calls.into_iter().map(|call| (call.line, call.words.join(" "))).collect()
        };
        let (first, second) = ("a b c".to_string(), "d".to_string());
        assert_eq!(
            lines("```console\n$ a b \\\n    c\nan answer\n$ d\n```"),
            [(2, first), (5, second.clone())]
        );
        assert_eq!(lines("```sh\nd\n```\n```text\ne\n```"), [(2, second)]);
    }
}
