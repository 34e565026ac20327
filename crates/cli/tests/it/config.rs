//! Profiles and `outlast config show`.

use crate::program::Program;
use crate::support::{Said, outlast, said};
use std::path::Path;

/// Runs the command with a configuration folder.
fn run(folder: &Path, variables: &[(&str, &str)], args: &[&str]) -> Said {
    let mut command = outlast(args);
    command.env("XDG_CONFIG_HOME", folder).env("APPDATA", folder);
    command.envs(variables.iter().copied());
    said(command.output().unwrap())
}

fn write(folder: &Path, text: &str) {
    std::fs::create_dir_all(folder.join("outlast")).unwrap();
    std::fs::write(folder.join("outlast").join("config.toml"), text).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn profile_names_the_store_of_a_command() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("jobs.db");
    Program::start(&store).await.fill_and_stop().await;
    write(
        dir.path(),
        &format!(
            "[profiles.jobs]\nstore = '{}'\n[profiles.gone]\nstore = '/nowhere/else.db'\n",
            store.display()
        ),
    );
    let list = |variables: &[(&str, &str)], more: &[&str]| {
        run(dir.path(), variables, &[&["instance", "list", "--prefix", "parked"], more].concat())
    };
    assert!(list(&[], &["--profile", "jobs"]).fine().contains("parked-1"));
    assert!(list(&[("OUTLAST_PROFILE", "jobs")], &[]).fine().contains("parked-1"));
    assert!(list(&[("OUTLAST_PROFILE", "gone")], &["--profile", "jobs"]).fine().contains("parked-1"));
    assert!(
        list(&[("OUTLAST_STORE", "/nowhere/else.db")], &["--profile", "jobs"]).fine().contains("parked-1")
    );
    let error = list(&[("OUTLAST_STORE", "/nowhere/a.db"), ("OUTLAST_PROFILE", "jobs")], &[]);
    assert!(error.err.contains("'/nowhere/a.db'"), "the variable comes before the profile: {error:?}");
    let said = list(&[], &["--profile", "jbos"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.err.contains("there is no profile 'jbos' (--profile): the file of profiles has gone, jobs"),
        "{said:?}"
    );
    let both = list(&[], &["--profile", "jobs", "--store", "a.db"]);
    assert_eq!(both.code, Some(2), "{both:?}");
}

#[test]
fn config_show_prints_profiles_without_passwords() {
    let dir = tempfile::tempdir().unwrap();
    let empty = run(dir.path(), &[], &["config", "show"]).fine();
    assert!(
        empty.contains("config.toml (does not exist)") && empty.contains("store  none: give --store"),
        "{empty}"
    );
    write(
        dir.path(),
        "default = 'shop'\n[profiles.shop]\nstore = 'postgres://ada:s3cret@db/shop?password=s3cret'\nschema = 'orders'\n",
    );
    let text = run(dir.path(), &[], &["config", "show"]).fine();
    for part in [
        "shop (default)  postgres://...@db/shop?password=...  orders",
        "from profile 'shop' (the default profile)",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let json =
        run(dir.path(), &[("OUTLAST_STORE", "postgres://b:s3cret@h/d")], &["config", "show", "-o", "json"])
            .fine();
    assert!(!text.contains("s3cret") && !json.contains("s3cret"), "{text} {json}");
    assert!(json.contains("\"from\": \"OUTLAST_STORE\""), "{json}");
    write(dir.path(), "[profiles.shop]\nstore = s3cret\n");
    let broken = run(dir.path(), &[], &["instance", "list"]);
    assert_eq!(broken.code, Some(2), "{broken:?}");
    assert!(broken.err.contains("line 2 is not understood") && !broken.err.contains("s3cret"), "{broken:?}");
}
