//! The pages: every screen, hostile texts, base paths, assets.

use crate::kit::{Server, fill, operating};
use outlast_server::Options;
use std::fs;
use std::path::Path;

#[tokio::test]
async fn every_screen_answers() {
    let server = Server::on_sqlite(operating()).await;
    screens(&server).await;
    server.stop().await;
}

pub(crate) async fn screens(server: &Server) {
    server.waiting_order("a").await;
    for (path, part) in [
        ("/instances", ">a</a>"),
        ("/instances?status=failed", "No instance matches"),
        (
            "/instances?status=Running&name=order&prefix=a",
            "outlast instance list --status running --name order --prefix a",
        ),
        ("/instances/a", " for event &#39;approval&#39;, and no client has sent it"),
        ("/instances/a?tries=true", "charge"),
        ("/instances/a?tab=events", "ActivityScheduled"),
        ("/instances/a?tab=events&payloads=true", "card 4711"),
        ("/instances/a?tab=state&at=1", "after event <b>1</b>"),
        ("/instances/a?tab=pending", "Nothing is queued"),
        ("/instances/a?tab=tree", "has no children"),
        ("/queues", "due now"),
        ("/dead-letters", "no dead letters"),
        ("/audit", "The audit has no records"),
        ("/system", "running"),
        ("/problems", "scope_missing"),
        ("/login", "data-login"),
    ] {
        let page = server.get(path).await;
        assert_eq!(page.status, 200, "{path}: {page:?}");
        assert!(page.body.contains(part), "{part} at {path}: {}", page.body);
        let hidden = !path.contains("payloads=true");
        assert!(!hidden || !page.body.contains("4711"), "payload at {path}");
    }
    let missing = server.get("/instances/missing").await;
    assert_eq!((missing.status, missing.body.contains("There is no such resource")), (404, true));
    let home = server.get("/").await;
    assert!(home.status == 303 && home.headers.contains("location: /instances"), "{home:?}");
}

#[tokio::test]
async fn hostile_texts_stay_texts() {
    let server = Server::start(operating()).await;
    let hostile = [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "'onmouseover='alert(1)",
        "{{7*7}}{% raw %}",
        "javascript:alert(1)",
        "</title></main><h1>x",
        "&lt;b&gt;",
        "a b/c?d#e%2F..%00",
        "../../etc/passwd",
        "\u{202e}gnp.exe",
    ];
    for text in hostile {
        server.waiting_order(text).await;
    }
    let list = server.get("/instances").await;
    let links = list.body.matches("<tr id=\"i-").count();
    assert_eq!(links, hostile.len(), "{}", list.body);
    for page in [list] {
        for part in ["<script>alert", "<img src=x", "'onmouseover='", "</title></main>", "href=\"javascript:"]
        {
            assert!(!page.body.contains(part), "{part} in {}", page.body);
        }
    }
    for text in hostile {
        let id: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let page = server.get(&format!("/instances/{id}?payloads=true")).await;
        assert_eq!(page.status, 200, "{text}");
        assert!(!page.body.contains("<script>alert") && !page.body.contains("<img src=x"), "{text}");
        assert_eq!(server.get(&format!("/api/v1/instances/{id}")).await.json()["id"], text);
    }
    server.stop().await;
}

#[tokio::test]
async fn links_begin_with_the_base_path() {
    let mut options = operating();
    options.base_path = "/a/b".to_string();
    let server = Server::start(options).await;
    server.waiting_order("one").await;
    crate::queues::queue_activities(&*server.provider).await;
    server.store.pause_instance("one", "ada", "a test").await.unwrap();
    for path in [
        "/instances",
        "/instances?status=Running&name=order&prefix=o",
        "/instances/one",
        "/instances/one?tab=events",
        "/instances/one?tab=state&at=2",
        "/instances/one?tab=pending",
        "/instances/one?tab=tree",
        "/instances/one?tries=true&payloads=true",
        "/queues",
        "/queues?items=activities",
        "/queues?items=turns",
        "/dead-letters",
        "/dead-letters?payloads=true",
        "/audit",
        "/system",
        "/problems",
        "/login",
    ] {
        let page = server.get(path).await;
        assert_eq!(page.status, 200, "{path}");
        for attribute in ["href=\"", "src=\"", "action=\"", "data-act=\""] {
            for rest in page.body.split(attribute).skip(1) {
                assert!(
                    rest.starts_with("/a/b/") || rest.starts_with('#'),
                    "{attribute}{:.40} at {path}",
                    rest
                );
            }
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn pages_have_no_inline_scripts_or_styles() {
    let server = Server::start(operating()).await;
    server.waiting_order("one").await;
    for path in ["/instances", "/instances/one", "/instances/one?tab=state", "/queues", "/login"] {
        let page = server.get(path).await.body;
        for part in [" style=", "<style", " onclick=", " onload=", "<script>"] {
            assert!(!page.contains(part), "{part} at {path}");
        }
    }
    server.stop().await;
}

/// The names of the scripts in a folder.
fn scripts_in(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".js")).collect()
}

#[tokio::test]
async fn scripts_make_no_code_and_no_elements_from_texts() {
    let server = Server::start(operating()).await;
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut scripts = Vec::new();
    for name in scripts_in(&crates.join("assets")) {
        let script = server.get(&format!("/assets/{name}")).await;
        assert!(script.status == 200 && script.headers.contains("text/javascript"), "{name}");
        scripts.push((name, script.body));
    }
    // The page of the demo is served with the dashboard.
    let demo = crates.join("../cli/src/demo/page");
    for name in scripts_in(&demo) {
        let text = fs::read_to_string(demo.join(&name)).unwrap();
        scripts.push((name, text));
    }
    for expected in ["bulk.js", "demo.js", "main.js"] {
        assert!(scripts.iter().any(|(name, _)| name == expected), "{expected}");
    }
    for (name, text) in scripts {
        for part in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "new Function", "document.write"]
        {
            assert!(!text.contains(part), "{part} in {name}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn page_that_ends_before_it_is_full_offers_to_keep_looking() {
    let server = Server::on_sqlite(Options::default()).await;
    // More instances than the store looks at for a page.
    fill(&server.file(), 40_000, 30_000);
    server.waiting_order("one").await;
    let short = server.get("/instances?name=order").await.body;
    assert!(short.contains("1 found so far") && short.contains("keep looking"), "{short}");
    let answer = server.get("/api/v1/instances?name=order").await.json();
    assert_eq!((answer["items"].as_array().unwrap().len(), &answer["complete"]), (1, &false.into()));
    let full = server.get("/instances?limit=1").await.body;
    assert!(!full.contains("found so far") && full.contains("older"), "{full}");
    server.stop().await;
}

#[tokio::test]
async fn known_assets_are_not_sent_again() {
    let server = Server::start(Options::default()).await;
    let first = server.get("/assets/style.css").await;
    let tag = first.headers.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    let again = server.send("GET", "/assets/style.css", &[("if-none-match", tag)], "").await;
    assert_eq!((first.status, again.status, again.body.len()), (200, 304, 0));
    assert_eq!(server.get("/assets/nothing.js").await.status, 404);
    server.stop().await;
}

#[tokio::test]
async fn keys_of_the_screens_are_in_the_help_and_lead_to_parts_of_pages() {
    let server = Server::start(Options::default()).await;
    let keys = server.get("/assets/keys.js").await.body;
    let screens = keys.split("const SCREENS = {").nth(1).unwrap().split('}').next().unwrap();
    let screens: Vec<(&str, &str)> = screens
        .split(',')
        .filter_map(|screen| screen.trim().split_once(": "))
        .map(|(key, path)| (key, path.trim_matches('"')))
        .collect();
    assert!(screens.len() > 5 && screens.contains(&("n", "/queues#nodes")), "{screens:?}");
    for (key, path) in screens {
        let (path, part) = path.split_once('#').unwrap_or((path, "main"));
        let page = server.get(path).await;
        assert!(page.status == 200 && page.body.contains(&format!("id=\"{part}\"")), "{part} at {path}");
        let help = page.body.split("<dialog id=\"help\"").nth(1).unwrap();
        let rows = help.split("<dt>").filter(|row| row.starts_with("<kbd>g</kbd>"));
        assert!(rows.into_iter().any(|row| row.contains(&format!("<kbd>{key}</kbd>"))), "{key} in {help}");
    }
    server.stop().await;
}
