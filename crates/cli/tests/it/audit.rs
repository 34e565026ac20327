//! `outlast audit`.

use crate::program::Program;
use crate::support::run;

#[tokio::test(flavor = "multi_thread")]
async fn records_are_listed_newest_first_and_page_by_page() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let program = Program::start(&path).await;
    let list = |more: &[&str]| run(["audit", "list", "--store", path.to_str().unwrap()].iter().chain(more));
    assert_eq!(list(&[]).fine(), "The audit has no records that match.\n");
    for (id, by) in [("a", "ada"), ("b", "bob"), ("c", "ada")] {
        program.park(id, "1.0.0").await;
        program.client.pause_instance(id, by, "a \u{1b}[31mtest").await.unwrap();
    }
    let text = list(&[]).fine();
    assert!(text.starts_with("NUMBER  TIME (UTC)               BY   ACTION"), "{text}");
    assert!(text.contains("a \\u{1b}[31mtest"), "control characters are escaped: {text}");
    let targets = |args: &[&str]| -> Vec<String> {
        let page = list(&[args, &["-o", "json"]].concat()).json();
        page["records"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["target"].as_str().unwrap().to_string())
            .collect()
    };
    assert_eq!(targets(&[]), ["c", "b", "a"]);
    assert_eq!(targets(&["--by", "ada"]), ["c", "a"]);
    assert_eq!(targets(&["--target", "b"]), ["b"]);
    assert_eq!(targets(&["--target", "nobody"]), [""; 0]);
    for condition in [&[][..], &["--by", "ada"]] {
        let first = list(&[condition, &["--limit", "1", "-o", "json"]].concat()).json();
        assert_eq!(first["records"][0]["target"], "c");
        let next = first["next"].to_string();
        let rest = targets(&[condition, &["--before", &next]].concat());
        assert_eq!(rest.last().map(String::as_str), Some("a"), "{condition:?}: {rest:?}");
        assert!(!rest.contains(&"c".to_string()), "{condition:?}: {rest:?}");
    }
    let last = list(&["--limit", "3", "-o", "json"]).json();
    assert!(last["next"].is_null(), "{last}");
    program.runtime.shutdown(None).await;
}
