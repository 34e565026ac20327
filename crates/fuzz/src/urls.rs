//! Connection strings of the SQLite and the PostgreSQL store: read, or refused without a secret in the message.

use crate::choices::Choices;

/// A password that no choice contains.
const SECRET: &str = "hunter2-s3cret";

/// Reads connection strings. A message about a refused one must not have the password.
pub fn connection_url(data: &[u8]) {
    let raw = String::from_utf8_lossy(data);
    read(&raw);
    let choices = &mut Choices::new(data);
    let user = plain(&choices.text(12));
    let (before, after) = (choices.text(48), choices.text(64));
    for text in [
        format!("postgres://{user}:{SECRET}@{after}"),
        format!("postgresql://{before}?password={SECRET}&{after}"),
        format!("{} password={SECRET} {after}", plain(&before)),
        format!("sqlite:{before}?password={SECRET}&{after}"),
    ] {
        for message in read(&text) {
            assert!(!message.contains(SECRET), "{text:?}: {message}");
        }
    }
}

/// The characters of a text that separate nothing in a connection string.
fn plain(text: &str) -> String {
    text.chars().filter(|char| char.is_alphanumeric() || matches!(char, '-' | '_' | '.')).collect()
}

/// The messages of the readers that refuse the text.
fn read(text: &str) -> Vec<String> {
    let postgres = outlast_postgres::check_url(text).map_err(|error| format!("{error} {error:?}"));
    let sqlite = outlast_sqlite::check_url(text).map_err(|error| format!("{error} {error:?}"));
    [postgres, sqlite].into_iter().filter_map(Result::err).collect()
}
