//! Child processes, and the lines that they print.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The root folder of the workspace. It is known at compile time because cargo runs the tools from their sources.
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).unwrap_or(manifest).to_path_buf()
}

/// The target folder of cargo.
pub fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The files that git tracks, and new files that git does not ignore.
pub fn files() -> Result<Vec<String>, String> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root());
    let paths = output(&mut git)?;
    Ok(paths.split('\0').filter(|path| !path.is_empty()).map(str::to_string).collect())
}

/// `cargo ARGS` in the root of the workspace, without stdin.
pub fn cargo<S: AsRef<str>>(args: &[S]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args.iter().map(AsRef::as_ref)).current_dir(root()).stdin(Stdio::null());
    // `cargo run` sets variables about the package that it runs. Build scripts would run again because of them.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// The command line, with the program's name instead of its path.
pub fn display(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_stem().unwrap_or_default().to_string_lossy();
    command
        .get_args()
        .map(|arg| arg.to_string_lossy())
        .fold(program.into_owned(), |line, arg| format!("{line} {arg}"))
}

/// Runs a command with the terminal's stdin, stdout and stderr.
pub fn run(command: &mut Command) -> Result<ExitCode, String> {
    let status = command.stdin(Stdio::inherit()).status();
    let status = status.map_err(|error| format!("`{}` could not be run: {error}", display(command)))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Runs a command to its end and returns its stdout. The error contains the command's stderr.
pub fn output(command: &mut Command) -> Result<String, String> {
    let call = display(command);
    let output = command.output().map_err(|error| format!("`{call}` could not be run: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).trim_end().to_string();
    Err(format!("`{call}` failed: {}\n{stderr}", output.status))
}

/// Whether a program exists and exits with 0. Its output is discarded.
pub fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Runs a command, prints each line of its output when the line arrives, and passes the line to `each`.
pub fn stream(command: Command, mut each: impl FnMut(&str)) -> Result<ExitStatus, String> {
    let call = display(&command);
    println!("$ {call}");
    let status = follow(command, None, |text| {
        print!("{text}");
        let _ = io::stdout().flush();
        each(&without_colour(text));
    })?;
    if !status.success() {
        println!("`{call}` failed: {status}");
    }
    Ok(status)
}

/// Runs a command beside others: its output is added to `output`, which the caller prints at the end. A command that prints
/// nothing for the time `silence` is killed, and is an error.
pub fn collect(
    command: Command,
    silence: Duration,
    output: &mut String,
    mut each: impl FnMut(&str),
) -> Result<ExitStatus, String> {
    follow(command, Some(silence), |text| {
        output.push_str(text);
        each(&without_colour(text));
    })
}

/// Runs a command and passes each line of its output to `each`.
///
/// Stdout and stderr share one pipe, so that cargo's messages keep their order among the lines of the tests.
#[expect(
    clippy::disallowed_methods,
    reason = "a thread reads the pipe, so that this one can wait with a limit"
)]
fn follow(
    mut command: Command,
    silence: Option<Duration>,
    mut each: impl FnMut(&str),
) -> Result<ExitStatus, String> {
    let call = display(&command);
    let failed = |error: io::Error| format!("`{call}` could not be run: {error}");
    let (reader, writer) = io::pipe().map_err(failed)?;
    command.stdout(writer.try_clone().map_err(failed)?).stderr(writer);
    let mut child = command.spawn().map_err(failed)?;
    // The command owns the writing ends of the pipe. The reader would wait for them forever.
    drop(command);
    let (sender, lines) = mpsc::channel();
    // The thread ends with the pipe, or with the first line that no receiver takes.
    std::thread::spawn(move || send_lines(reader, &sender));
    loop {
        match lines.recv_timeout(silence.unwrap_or(Duration::MAX)) {
            Ok(line) => each(&String::from_utf8_lossy(&line.map_err(failed)?)),
            Err(mpsc::RecvTimeoutError::Disconnected) => return child.wait().map_err(failed),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                child.kill().and_then(|()| child.wait()).map_err(failed)?;
                let seconds = silence.unwrap_or_default().as_secs();
                return Err(format!("`{call}` printed nothing for {seconds} s and was killed"));
            }
        }
    }
}

/// Sends each line of the pipe, until the pipe ends or the receiver is gone.
fn send_lines(reader: io::PipeReader, sender: &mpsc::Sender<io::Result<Vec<u8>>>) {
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = Vec::new();
        let sent = match reader.read_until(b'\n', &mut line) {
            Ok(0) => return,
            read => sender.send(read.map(|_| line)),
        };
        if sent.is_err() {
            return;
        }
    }
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

/// Whether the user is root.
pub fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_loses_its_colours_and_its_line_ending() {
        assert_eq!(without_colour("test a ... \u{1b}[31mFAILED\u{1b}(B\u{1b}[m\n"), "test a ... FAILED");
        assert_eq!(without_colour("\u{1b}[1m\u{1b}[32mok\u{1b}[0m\r\n"), "ok");
    }

    #[test]
    fn a_stream_passes_on_every_line_and_returns_the_status() {
        let mut lines = Vec::new();
        let status = stream(cargo(&["--version"]), |line| lines.push(line.to_string())).unwrap();
        assert!(status.success());
        assert!(lines.iter().any(|line| line.starts_with("cargo ")), "{lines:?}");

        let mut lines = Vec::new();
        let status = stream(cargo(&["no-such-command"]), |line| lines.push(line.to_string())).unwrap();
        assert!(!status.success());
        assert!(lines.iter().any(|line| line.starts_with("error: ")), "stderr is missing: {lines:?}");
    }

    #[test]
    fn a_collected_command_adds_its_lines_to_the_output() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; exit 3"]);
        let (mut output, mut lines) = (String::new(), Vec::new());
        let minute = Duration::from_secs(60);
        let status = collect(command, minute, &mut output, |line| lines.push(line.to_string())).unwrap();
        assert_eq!((status.code(), output.as_str()), (Some(3), "one\ntwo\n"));
        assert_eq!(lines, ["one", "two"]);
    }

    #[test]
    fn a_collected_command_that_prints_nothing_for_too_long_is_killed() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo begun; exec sleep 600"]);
        let mut output = String::new();
        let error = collect(command, Duration::from_millis(300), &mut output, |_| {}).unwrap_err();
        assert!(error.contains("printed nothing for 0 s and was killed"), "{error}");
        assert_eq!(output, "begun\n");
    }

    #[test]
    fn a_missing_program_is_an_error_that_names_the_program() {
        let error = stream(Command::new("no-such-program-anywhere"), |_| {}).unwrap_err();
        assert!(error.contains("no-such-program-anywhere"), "{error}");
        assert!(!succeeds(&mut Command::new("no-such-program-anywhere")));
    }

    #[test]
    fn output_is_stdout_or_an_error_with_stderr() {
        let error = output(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err();
        assert!(error.contains("failed: exit status: 3\nwhy"), "{error}");
        assert_eq!(output(Command::new("echo").arg("this")), Ok("this\n".to_string()));
    }
}
