//! `outlast token`.

use crate::support::run;

#[test]
fn created_tokens_are_in_the_file_with_their_scopes() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tokens");
    let file = file.to_str().unwrap();
    let create = |args: &[&str]| run(["token", "create", "--file", file].iter().chain(args));
    let ada = create(&["ada", "--scope", "operate,payloads"]).fine();
    assert_eq!(ada.trim_end().len(), 64, "{ada}");
    let bob = create(&["bob", "--scope", "read", "-o", "json"]).json();
    assert_eq!(bob["scopes"], serde_json::json!(["read"]));
    let listed = run(["token", "list", "--file", file]).fine();
    assert_eq!(listed, "NAME  SCOPES\nada   read,payloads,operate\nbob   read\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let taken = create(&["ada", "--scope", "read"]).failed();
    assert!(taken.contains("has a token 'ada'") && !taken.contains(ada.trim_end()), "{taken}");
    assert_eq!(create(&["eve", "--scope", "write"]).code, Some(2));
    assert_eq!(create(&["eve"]).code, Some(2));
    assert!(run(["token", "list", "--file", "/nowhere/at/all"]).failed().contains("'/nowhere/at/all'"));
}
