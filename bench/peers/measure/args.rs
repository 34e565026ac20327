//! `SCENARIO [--option VALUE]..`

use std::collections::BTreeMap;
use std::str::FromStr;

pub(crate) struct Args {
    pub(crate) scenario: String,
    options: BTreeMap<String, String>,
}

impl Args {
    /// Reads the arguments after the program's name. Options that are not `known` are refused: a run with a misspelt option
    /// would measure another setting.
    pub(crate) fn parse(mut args: impl Iterator<Item = String>, known: &[&str]) -> Result<Self, String> {
        let scenario = args.next().ok_or("which scenario?")?;
        let mut options = BTreeMap::new();
        while let Some(option) = args.next() {
            if !known.contains(&option.as_str()) {
                return Err(format!("unknown option '{option}', known are: {}", known.join(" ")));
            }
            let value = args.next().ok_or_else(|| format!("'{option}' needs a value"))?;
            options.insert(option, value);
        }
        Ok(Self { scenario, options })
    }

    pub(crate) fn text<'a>(&'a self, option: &str, default: &'a str) -> &'a str {
        self.options.get(option).map_or(default, String::as_str)
    }

    pub(crate) fn number<T: FromStr>(&self, option: &str, default: T) -> Result<T, String> {
        match self.options.get(option) {
            None => Ok(default),
            Some(value) => value.parse().map_err(|_| format!("'{option} {value}': not a number")),
        }
    }
}
