//! Bearer tokens, and the file that lists them.

use super::{Scope, Scopes};
use outlast::providers::{Entropy, OsEntropy};
use sha2::{Digest, Sha256};
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use subtle::ConstantTimeEq;

/// The fewest characters of a token.
const SHORTEST: usize = 32;

/// The first line of a token file.
const TITLE: &str = "# NAME SCOPE,SCOPE TOKEN; the scopes are read, payloads, operate and admin\n";

/// Named tokens with scopes. Only digests are kept in memory.
#[derive(Clone, Default)]
pub struct Tokens {
    all: Vec<Token>,
}

#[derive(Clone)]
struct Token {
    name: String,
    scopes: Scopes,
    digest: [u8; 32],
}

/// A token file that cannot be used.
#[derive(Debug)]
pub struct TokenError(String);

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TokenError {}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all.iter().map(|token| &token.name)).finish()
    }
}

impl Tokens {
    /// Adds a token. The name stands in audit records.
    #[must_use]
    pub fn with(
        mut self,
        name: impl Into<String>,
        scopes: impl IntoIterator<Item = Scope>,
        token: &str,
    ) -> Self {
        self.all.push(Token {
            name: name.into(),
            scopes: scopes.into_iter().collect(),
            digest: digest(token),
        });
        self
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Reads a file with one token per line: `NAME SCOPE,SCOPE TOKEN`. Empty lines and lines with `#` are skipped. On Unix the file
    /// must be readable by its owner alone; a file of another user, such as a mounted secret, may be readable by its group too.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, other users can read it, it has no token, or a line is not understood. No message quotes a token.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let shown = path.display();
        check_mode(path)?;
        let text = std::fs::read_to_string(path)
            .map_err(|error| TokenError(format!("the token file '{shown}' cannot be read: {error}")))?;
        let mut tokens = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |why: &str| {
                TokenError(format!(
                    "line {number} of the token file '{shown}' {why}: write NAME SCOPE,SCOPE TOKEN"
                ))
            };
            let [name, scopes, token] = line.split_whitespace().collect::<Vec<_>>()[..] else {
                return Err(wrong("does not have three words"));
            };
            let scopes: Option<Vec<Scope>> = scopes.split(',').map(Scope::from_text).collect();
            let scopes =
                scopes.ok_or_else(|| wrong("has a scope other than read, payloads, operate and admin"))?;
            if token.len() < SHORTEST {
                return Err(wrong("has a token of fewer than 32 characters"));
            }
            tokens = tokens.with(name, scopes, token);
        }
        match tokens.is_empty() {
            true => Err(TokenError(format!("the token file '{shown}' has no token"))),
            false => Ok(tokens),
        }
    }

    /// Creates a token file with one new token, and returns the token. The file must not exist.
    ///
    /// # Errors
    ///
    /// If the file exists or cannot be written.
    pub fn create(path: &Path, name: &str, scope: Scope) -> Result<String, TokenError> {
        let token = new_token();
        write_private(path, &format!("{TITLE}{}", line(name, &[scope], &token))).map_err(|error| {
            TokenError(format!("the token file '{}' cannot be created: {error}", path.display()))
        })?;
        Ok(token)
    }

    /// Adds a new token to a token file, and returns the token. A missing file is created.
    ///
    /// # Errors
    ///
    /// If the name is empty, is taken, begins with `#` or has white space, if there is no scope, or if the file cannot be read or
    /// written.
    pub fn add(path: &Path, name: &str, scopes: &[Scope]) -> Result<String, TokenError> {
        if name.is_empty()
            || name.starts_with('#')
            || name.contains(|char: char| char.is_whitespace() || char.is_control())
        {
            return Err(TokenError("the name of a token is one word that does not begin with #".to_string()));
        }
        if scopes.is_empty() {
            return Err(TokenError(format!("token '{name}' has no scope")));
        }
        let token = new_token();
        let line = line(name, scopes, &token);
        let written = match path.exists() {
            false => write_private(path, &format!("{TITLE}{line}")),
            true => {
                if Self::read(path)?.named().any(|(known, _)| known == name) {
                    return Err(TokenError(format!(
                        "the token file '{}' has a token '{name}': take another name, or remove its line",
                        path.display()
                    )));
                }
                append(path, &line)
            }
        };
        written.map_err(|error| {
            TokenError(format!("the token file '{}' cannot be written: {error}", path.display()))
        })?;
        Ok(token)
    }

    /// The names and scopes, in the order of the file.
    pub fn named(&self) -> impl Iterator<Item = (&str, Scopes)> {
        self.all.iter().map(|token| (token.name.as_str(), token.scopes))
    }

    /// The name and scopes of a token. Every digest is compared, in constant time.
    pub(crate) fn find(&self, presented: &str) -> Option<(&str, Scopes)> {
        let presented = digest(presented);
        let mut found = None;
        for token in &self.all {
            if bool::from(token.digest.ct_eq(&presented)) {
                found = Some((token.name.as_str(), token.scopes));
            }
        }
        found
    }
}

fn new_token() -> String {
    format!("{:032x}{:032x}", OsEntropy.next_u128(), OsEntropy.next_u128())
}

fn line(name: &str, scopes: &[Scope], token: &str) -> String {
    let scopes: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
    format!("{name} {} {token}\n", scopes.join(","))
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(unix)]
fn check_mode(path: &Path) -> Result<(), TokenError> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = std::fs::metadata(path).map_err(|error| {
        TokenError(format!("the token file '{}' cannot be read: {error}", path.display()))
    })?;
    // The owner of a mounted secret is root, and the process reads it by its group.
    let refused = if is_own(&metadata) { 0o077 } else { 0o037 };
    match metadata.permissions().mode() & refused {
        0 => Ok(()),
        _ => Err(TokenError(format!(
            "other users may read the token file '{0}': run `chmod 600 {0}`",
            path.display()
        ))),
    }
}

/// Whether the file belongs to the user of this process. Where the user is not known, it counts as its own.
#[cfg(unix)]
fn is_own(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").map_or(true, |process| process.uid() == metadata.uid())
}

#[cfg(not(unix))]
fn check_mode(_path: &Path) -> Result<(), TokenError> {
    Ok(())
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Adds a line to a file, also if the last line of the file has no end.
fn append(path: &Path, line: &str) -> io::Result<()> {
    let ends = std::fs::read(path)?.last().is_none_or(|last| *last == b'\n');
    let mut file = std::fs::OpenOptions::new().append(true).open(path)?;
    let end = if ends { "" } else { "\n" };
    file.write_all(format!("{end}{line}").as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn read(text: &str) -> Result<Tokens, TokenError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        write_private(&path, text).unwrap();
        Tokens::read(&path)
    }

    #[test]
    fn created_token_is_found_with_its_scope() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let token = Tokens::create(&path, "ada", Scope::Operate).unwrap();
        let tokens = Tokens::read(&path).unwrap();
        let (name, scopes) = tokens.find(&token).unwrap();
        assert_eq!((name, scopes.allow(Scope::Operate), scopes.allow(Scope::Admin)), ("ada", true, false));
        assert!(tokens.find("").is_none() && tokens.find(&token[1..]).is_none());
        assert!(Tokens::create(&path, "ada", Scope::Admin).is_err(), "a file is not overwritten");
    }

    #[test]
    fn added_tokens_have_their_scopes_and_names_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let ada = Tokens::add(&path, "ada", &[Scope::Operate, Scope::Payloads]).unwrap();
        // An editor may leave the last line without its end.
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.trim_end()).unwrap();
        let bob = Tokens::add(&path, "bob", &[Scope::Read]).unwrap();
        let tokens = Tokens::read(&path).unwrap();
        let (name, scopes) = tokens.find(&ada).unwrap();
        let allowed = Scope::ALL.map(|scope| scopes.allow(scope));
        assert_eq!((name, allowed), ("ada", [true, true, true, false]));
        assert_eq!(tokens.find(&bob).unwrap().0, "bob");
        assert_eq!(tokens.named().map(|(name, _)| name).collect::<Vec<_>>(), ["ada", "bob"]);
        for (name, scopes, part) in [
            ("ada", &[Scope::Read][..], "has a token 'ada'"),
            ("a b", &[Scope::Read], "one word"),
            ("#a", &[Scope::Read], "one word"),
            ("", &[Scope::Read], "one word"),
            ("eve", &[], "no scope"),
        ] {
            let message = Tokens::add(&path, name, scopes).unwrap_err().to_string();
            assert!(message.contains(part) && !message.contains(&ada), "{message}");
        }
        assert_eq!(Tokens::read(&path).unwrap().named().count(), 2, "nothing else was added");
    }

    #[test]
    fn wrong_lines_are_rejected_without_their_token() {
        for (line, part) in [
            ("ada read", "three words"),
            (&format!("ada write {TOKEN}"), "a scope other than"),
            ("ada read secret", "fewer than 32"),
            ("# nothing", "no token"),
        ] {
            let message = read(line).unwrap_err().to_string();
            assert!(
                message.contains(part) && !message.contains(TOKEN) && !message.contains("secret"),
                "{message}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn file_that_others_can_read_is_rejected() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        Tokens::create(&path, "ada", Scope::Read).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Tokens::read(&path).unwrap_err().to_string().contains("chmod 600"));
        // A file of another user, such as a mounted secret. Only root can give a file away.
        if std::os::unix::fs::chown(&path, Some(65_532), None).is_ok() {
            assert!(Tokens::read(&path).is_ok(), "its group may read it");
            for mode in [0o660, 0o644, 0o604] {
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
                assert!(Tokens::read(&path).is_err(), "mode {mode:o}");
            }
        }
    }
}
