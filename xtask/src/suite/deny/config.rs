//! The lists of deny.toml.

/// What is allowed.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Config {
    pub(super) licences: Vec<String>,
    /// Crates of which an old version is tolerated, with the numbers that it begins with.
    pub(super) skipped: Vec<(String, String)>,
}

impl Config {
    /// Reads the two lists, as this file writes them: a string or an inline table per line.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut config = Self::default();
        let (mut table, mut list) = ("", "");
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                (table, list) = (name, "");
            } else if let Some((name, "[")) = line.split_once('=').map(|(n, value)| (n.trim(), value.trim()))
            {
                list = name;
            } else if line == "]" {
                list = "";
            } else {
                match (table, list) {
                    ("licenses", "allow") => config.licences.extend(quoted(line).next()),
                    ("bans", "skip") => {
                        let mut strings = quoted(line);
                        let pair = strings.next().zip(strings.next());
                        config
                            .skipped
                            .push(pair.ok_or(format!("deny.toml: no name and version in `{line}`"))?);
                    }
                    _ => {}
                }
            }
        }
        match config.licences.is_empty() {
            true => Err("deny.toml allows no licence: is `allow` one string per line?".to_string()),
            false => Ok(config),
        }
    }
}

/// The strings of a line.
fn quoted(line: &str) -> impl Iterator<Item = String> {
    line.split('"').skip(1).step_by(2).map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_read() {
        let text = "
# [licenses] allow = [\"A\"]
[licenses]
allow = [
    # why
    \"MIT\",
    \"Zlib\",
]
[bans]
wildcards = \"deny\"
skip = [
    { name = \"syn\", version = \"2\", reason = \"many\" },
]
";
        let config = Config::read(text).unwrap();
        assert_eq!(config.licences, ["MIT", "Zlib"]);
        assert_eq!(config.skipped, [("syn".to_string(), "2".to_string())]);
        assert!(Config::read("[licenses]\nallow = []").is_err());
    }
}
