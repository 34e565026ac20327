//! Child processes: cargo, and a stream of what it prints.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// The folder of the root manifest. Known when xtask is compiled, because `cargo xtask` always runs from its source.
pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

/// Where cargo builds.
pub(crate) fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Tracked files and those that a commit would add.
pub(crate) fn files() -> Result<Vec<String>, String> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root());
    let output = git.output().map_err(|error| format!("git could not be run: {error}"))?;
    if !output.status.success() {
        return Err(format!("git ls-files failed: {}", String::from_utf8_lossy(&output.stderr).trim_end()));
    }
    let paths = String::from_utf8_lossy(&output.stdout);
    Ok(paths.split('\0').filter(|path| !path.is_empty()).map(str::to_string).collect())
}

/// `cargo ARGS` in the root of the workspace, without the stdin that nobody answers.
pub(crate) fn cargo<S: AsRef<str>>(args: &[S]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args.iter().map(AsRef::as_ref)).current_dir(root()).stdin(Stdio::null());
    // `cargo run` describes xtask to xtask. Handed on, these would make build scripts run again for nothing.
    for (name, _) in std::env::vars_os() {
        let described = name.to_string_lossy();
        if described.starts_with("CARGO_PKG_") || described.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// The command as a person would type it.
pub(crate) fn display(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_stem().unwrap_or_default().to_string_lossy();
    command
        .get_args()
        .map(|arg| arg.to_string_lossy())
        .fold(program.into_owned(), |line, arg| format!("{line} {arg}"))
}

/// Runs a command, copies all that it prints to our stdout at once, and shows every line to `each`.
///
/// Both of its streams share one pipe, so that cargo's messages stay in order with the test output that they are about.
pub(crate) fn stream(mut command: Command, mut each: impl FnMut(&str)) -> Result<ExitStatus, String> {
    let call = display(&command);
    let failed = |error: io::Error| format!("`{call}` could not be run: {error}");
    println!("$ {call}");
    let (reader, writer) = io::pipe().map_err(failed)?;
    command.stdout(writer.try_clone().map_err(failed)?).stderr(writer);
    let mut child = command.spawn().map_err(failed)?;
    drop(command); // It owns our ends of the pipe: the reader would wait for them forever.

    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).map_err(failed)? > 0 {
        let text = String::from_utf8_lossy(&line);
        print!("{text}");
        io::stdout().flush().map_err(failed)?;
        each(&without_colour(&text));
        line.clear();
    }
    let status = child.wait().map_err(failed)?;
    if !status.success() {
        println!("`{call}` failed: {status}");
    }
    Ok(status)
}

/// The line without its ANSI escapes and its line ending.
fn without_colour(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.trim_end_matches(['\r', '\n']).chars();
    while let Some(char) = chars.next() {
        if char == '\u{1b}' {
            // An escape sequence ends with its first letter.
            let _ = chars.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(char);
        }
    }
    plain
}

/// Whether this user may do everything.
pub(crate) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_removed() {
        assert_eq!(without_colour("test a ... \u{1b}[31mFAILED\u{1b}(B\u{1b}[m\n"), "test a ... FAILED");
        assert_eq!(without_colour("\u{1b}[1m\u{1b}[32mok\u{1b}[0m\r\n"), "ok");
    }

    #[test]
    fn a_stream_shows_every_line_and_the_status() {
        let mut lines = Vec::new();
        let status = stream(cargo(&["--version"]), |line| lines.push(line.to_string())).unwrap();
        assert!(status.success());
        assert!(lines.iter().any(|line| line.starts_with("cargo ")), "{lines:?}");

        let mut lines = Vec::new();
        let status = stream(cargo(&["no-such-command"]), |line| lines.push(line.to_string())).unwrap();
        assert!(!status.success());
        assert!(lines.iter().any(|line| line.starts_with("error: ")), "stderr is streamed too: {lines:?}");
    }

    #[test]
    fn a_missing_program_is_an_error_that_names_it() {
        let error = stream(Command::new("no-such-program-anywhere"), |_| {}).unwrap_err();
        assert!(error.contains("no-such-program-anywhere"), "{error}");
    }
}
