//! Database URLs for messages, without secrets.

/// Removes user, password and the values of options from a URL: both `user:password@` and `?password=..` are common.
pub fn shown(url: &str) -> String {
    if url
        .split_once("://")
        .is_some_and(|(scheme, _)| scheme.contains(|c: char| c == '=' || c.is_whitespace()))
    {
        // A list of key=value pairs, with `://` in one of its values.
        return "...".to_string();
    }
    let (place, query) = url.split_once('?').map_or((url, None), |(place, query)| (place, Some(query)));
    let is_apart = |c: char| c == '=' || c.is_whitespace();
    let has_scheme = place.split_once(':').is_some_and(|(scheme, _)| !scheme.contains(is_apart));
    if place.contains('=') && (!has_scheme || place.contains(char::is_whitespace)) {
        // A list of key=value pairs.
        return "...".to_string();
    }
    let mut shown = match place.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('@') => format!("{scheme}://{}", without_user(rest)),
        _ => without_user(place),
    };
    if let Some(query) = query {
        if query.contains('@') {
            // This may be a password with an unescaped '?' instead of options.
            return place
                .split_once("://")
                .map_or("...".to_string(), |(scheme, _)| format!("{scheme}://..."));
        }
        let names = query.split('&').map(|option| match option.split_once('=') {
            Some((name, _)) => format!("{name}=..."),
            None => "...".to_string(),
        });
        shown.push('?');
        shown.push_str(&names.collect::<Vec<_>>().join("&"));
    }
    shown
}

/// Removes the part before the last '@': a password may contain an unescaped '@'.
fn without_user(place: &str) -> String {
    place.rfind('@').map_or_else(|| place.to_string(), |at| format!("...{}", &place[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_passwords_and_option_values_are_removed() {
        for (url, expected) in [
            ("sqlite:a.db", "sqlite:a.db"),
            ("sqlite:a.db?mode=rw", "sqlite:a.db?mode=..."),
            ("postgres://host/db", "postgres://host/db"),
            ("postgres://me:s3cret@host:5432/db?sslmode=require", "postgres://...@host:5432/db?sslmode=..."),
            ("postgres://me:s3@cret@host/db", "postgres://...@host/db"),
            ("postgres://host/db?user=me&password=s3cret", "postgres://host/db?user=...&password=..."),
            ("postgres://me:s3?cret@host/db", "postgres://..."),
            ("postgres://me:s3?cret=@host/db", "postgres://..."),
            ("me:s3?cret@host", "..."),
            ("postgres://@host/db", "postgres://...@host/db"),
            ("me:s3cret@host", "...@host"),
            ("me:s3cret@host://db", "...@host://db"),
            ("sqlite:a.db?s3cret", "sqlite:a.db?..."),
            ("password=s3cret://x host=h", "..."),
            ("host=h password=a s3cret://x", "..."),
            ("host=h password=s3cret", "..."),
            ("password=s3cret", "..."),
            ("host=h password=s3?cret", "..."),
            ("h:5 password=s3cret", "..."),
            ("sqlite:a=b.db", "sqlite:a=b.db"),
            ("", ""),
        ] {
            assert_eq!(shown(url), expected);
        }
    }
}
