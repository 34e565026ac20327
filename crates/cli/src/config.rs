//! Profiles: named stores in a file of the user's configuration folder.
//!
//! The store of a command is the first of: --store, --profile, OUTLAST_STORE, OUTLAST_PROFILE, the default profile of the file.

use crate::args::Format;
use crate::failure::Failure;
use crate::output::{plain, print, table};
use crate::store::{Place, StoreUrl, VARIABLE};
use clap::{Args as ClapArgs, Subcommand};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// The environment variable that names a profile.
const PROFILE: &str = "OUTLAST_PROFILE";

#[derive(Debug, ClapArgs)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Show the profiles, and the store that a command without --store uses; passwords are not shown
    Show(ShowArgs),
}

#[derive(Debug, ClapArgs)]
struct ShowArgs {
    /// Output format: a table, one JSON document, or one JSON object per line
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

/// The file of profiles.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Profiles {
    /// The profile of commands that name none.
    default: Option<String>,
    #[serde(default)]
    profiles: BTreeMap<String, Profile>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    store: String,
    schema: Option<String>,
}

/// The choices of a command, in their order.
struct Choices {
    store: Option<StoreUrl>,
    profile: Option<String>,
    variable: Option<String>,
    variable_profile: Option<String>,
}

/// The store of a command, and where its name comes from. `None` if no store is named.
pub(crate) fn chosen(
    store: Option<StoreUrl>,
    profile: Option<String>,
    schema: Option<String>,
) -> Result<Option<(Place, String)>, Failure> {
    let given = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let choices = Choices { store, profile, variable: given(VARIABLE), variable_profile: given(PROFILE) };
    choices.take(schema, || Ok(read()?.1))
}

impl Choices {
    fn take(
        self,
        schema: Option<String>,
        profiles: impl FnOnce() -> Result<Profiles, Failure>,
    ) -> Result<Option<(Place, String)>, Failure> {
        let named =
            |url: StoreUrl, from: &str| Ok(Some((Place { url, schema: schema.clone() }, from.to_string())));
        if let Some(url) = self.store.filter(|url| !url.as_str().is_empty()) {
            return named(url, "--store");
        }
        if let (None, Some(url)) = (&self.profile, self.variable) {
            return named(StoreUrl::from(url), VARIABLE);
        }
        let profiles = profiles()?;
        let (name, from) = match (self.profile, self.variable_profile, &profiles.default) {
            (Some(name), _, _) => (name, "--profile"),
            (None, Some(name), _) => (name, PROFILE),
            (None, None, Some(name)) => (name.clone(), "the default profile"),
            (None, None, None) => return Ok(None),
        };
        let Some(profile) = profiles.profiles.get(&name) else {
            let known: Vec<&str> = profiles.profiles.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
            return Err(Failure::usage(format!(
                "there is no profile '{name}' ({from}): the file of profiles has {known}; `outlast config show` names the file"
            )));
        };
        let schema = schema.or_else(|| profile.schema.clone());
        let place = Place { url: StoreUrl::from(profile.store.clone()), schema };
        Ok(Some((place, format!("profile '{name}' ({from})"))))
    }
}

/// The path of the file of profiles; `None` if the user has no configuration folder.
fn path(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = match cfg!(windows) {
        true => folder("APPDATA"),
        false => folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config"))),
    };
    Some(base?.join("outlast").join("config.toml"))
}

/// The path and the content of the file. A missing file has no profiles.
fn read() -> Result<(Option<PathBuf>, Profiles), Failure> {
    let Some(path) = path(|name| std::env::var_os(name)) else { return Ok((None, Profiles::default())) };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok((Some(path), Profiles::default()));
        }
        Err(error) => return Err(Failure::new(format!("'{}' cannot be read: {error}", path.display()))),
    };
    match parsed(&text) {
        Ok(profiles) => Ok((Some(path), profiles)),
        Err(reason) => Err(Failure::usage(format!("'{}' is no file of profiles: {reason}", path.display()))),
    }
}

/// The profiles of a text. The error quotes no line of it: a line may hold a password.
fn parsed(text: &str) -> Result<Profiles, String> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        format!(
            "line {line} is not understood. It has `default = \"NAME\"`, and tables [profiles.NAME] with `store = \"URL\"` and \
             `schema = \"NAME\"`"
        )
    })
}

pub(crate) fn run(args: &ConfigArgs) -> Result<(), Failure> {
    let ConfigCommand::Show(show) = &args.command;
    let (path, profiles) = read()?;
    let active = chosen(None, None, None)?;
    let shown = Shown {
        file: path.as_ref().map(|path| path.display().to_string()),
        exists: path.is_some_and(|path| path.exists()),
        default: profiles.default,
        store: active.as_ref().map(|(place, _)| place.to_string()),
        from: active.map(|(_, from)| from),
        profiles: profiles
            .profiles
            .into_iter()
            .map(|(name, profile)| Row {
                name,
                store: StoreUrl::from(profile.store).to_string(),
                schema: profile.schema,
            })
            .collect(),
    };
    print(show.output, &shown, Shown::text)
}

/// The profiles without their secrets.
#[derive(Serialize)]
struct Shown {
    file: Option<String>,
    exists: bool,
    default: Option<String>,
    /// The store of a command without --store and --profile.
    store: Option<String>,
    from: Option<String>,
    profiles: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    store: String,
    schema: Option<String>,
}

impl Shown {
    fn text(&self) -> String {
        let file = match (&self.file, self.exists) {
            (Some(file), true) => plain(file),
            (Some(file), false) => format!("{} (does not exist)", plain(file)),
            (None, _) => "none: neither XDG_CONFIG_HOME nor HOME is set".to_string(),
        };
        let store = match (&self.store, &self.from) {
            (Some(store), Some(from)) => format!("{}, from {}", plain(store), plain(from)),
            _ => format!("none: give --store or --profile, or set {VARIABLE} or {PROFILE}"),
        };
        let mut text = format!("file   {file}\nstore  {store}\n");
        if !self.profiles.is_empty() {
            let rows: Vec<Vec<String>> = self
                .profiles
                .iter()
                .map(|row| {
                    let mark = if self.default.as_ref() == Some(&row.name) { " (default)" } else { "" };
                    let schema = row.schema.as_deref().unwrap_or("-");
                    vec![format!("{}{mark}", plain(&row.name)), plain(&row.store), plain(schema)]
                })
                .collect();
            text.push_str(&format!("\n{}", table(&["PROFILE", "STORE", "SCHEMA"], &rows)));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "default = 'shop'\n[profiles.shop]\nstore = 'postgres://ada:s3cret@db/shop'\nschema = 'orders'\n\
                        [profiles.local]\nstore = 'shop.db'\n";

    fn choose(
        store: Option<&str>,
        profile: Option<&str>,
        variable: Option<&str>,
        variable_profile: Option<&str>,
    ) -> String {
        let text = |value: Option<&str>| value.map(str::to_string);
        let choices = Choices {
            store: text(store).map(StoreUrl::from),
            profile: text(profile),
            variable: text(variable),
            variable_profile: text(variable_profile),
        };
        match choices.take(None, || Ok(parsed(FILE).unwrap())) {
            Ok(Some((place, from))) => format!("{place} from {from}"),
            Ok(None) => "none".to_string(),
            Err(failure) => failure.to_string(),
        }
    }

    #[test]
    fn flags_come_before_variables_and_variables_before_the_default_profile() {
        let (a, local) = (Some("a.db"), Some("local"));
        assert_eq!(choose(a, None, Some("b.db"), local), "a.db from --store");
        assert_eq!(
            choose(None, local, Some("b.db"), Some("shop")),
            "shop.db from profile 'local' (--profile)"
        );
        assert_eq!(choose(None, None, Some("b.db"), local), "b.db from OUTLAST_STORE");
        assert_eq!(choose(None, None, None, local), "shop.db from profile 'local' (OUTLAST_PROFILE)");
        let default = choose(None, None, None, None);
        assert_eq!(
            default,
            "schema 'orders' of postgres://...@db/shop from profile 'shop' (the default profile)"
        );
    }

    #[test]
    fn unknown_profile_names_the_known_ones() {
        let message = choose(None, Some("shpo"), None, None);
        assert!(message.contains("no profile 'shpo'") && message.contains("local, shop"), "{message}");
    }

    #[test]
    fn file_that_is_not_understood_is_not_quoted() {
        for text in
            ["default = 's3cret", "[profiles.a]\nstroe = 's3cret'", "[profiles.a]\nstore = 1", "s3cret"]
        {
            let message = parsed(text).unwrap_err();
            assert!(message.contains("line ") && !message.contains("s3cret"), "{message}");
        }
        assert!(parsed("[profiles.a]\nstore = 'x'\npassword = 's3cret'").unwrap_err().contains("line 3"));
    }

    #[test]
    fn file_is_in_the_configuration_folder() {
        if cfg!(windows) {
            return;
        }
        let of = |set: &[(&str, &str)]| {
            path(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value)))
        };
        assert_eq!(
            of(&[("HOME", "/home/ada")]).unwrap(),
            PathBuf::from("/home/ada/.config/outlast/config.toml")
        );
        let both = [("HOME", "/home/ada"), ("XDG_CONFIG_HOME", "/etc/ada")];
        assert_eq!(of(&both).unwrap(), PathBuf::from("/etc/ada/outlast/config.toml"));
        assert_eq!(of(&[("XDG_CONFIG_HOME", "")]), None);
    }
}
