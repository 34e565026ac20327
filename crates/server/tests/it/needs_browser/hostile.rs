//! Texts of users that try to become markup, scripts, addresses or terminal commands, in every place that a page shows.

use super::shop::{Shop, options};
use crate::kit::PATIENCE;
use outlast::prelude::*;
use outlast::runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use outlast_browser::{Tab, open};
use serde_json::json;

/// The texts. Each that runs sets `window.hit`, opens a dialog, or adds an element with the class `hit`.
const HOSTILE: &[&str] = &[
    "<script>window.hit=1</script>",
    "</script><script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    "\"><img src=x onerror=\"window.hit=1\">",
    "'><svg onload=window.hit=1>",
    "' onmouseover='window.hit=1' x='",
    "\" autofocus onfocus=\"window.hit=1\" x=\"",
    "` onclick=window.hit=1 `",
    "<svg><script>window.hit=1</script></svg>",
    "<svg><animate onbegin=window.hit=1 attributeName=x dur=1s>",
    "<math><mtext><table><mglyph><style><img src=x onerror=window.hit=1>",
    "<iframe srcdoc='<script>parent.hit=1</script>'>",
    "<iframe src=javascript:parent.hit=1>",
    "<object data=javascript:window.hit=1>",
    "<embed src=javascript:window.hit=1>",
    "<base href=https://hit.example/>",
    "<meta http-equiv=refresh content='0;url=javascript:window.hit=1'>",
    "<link rel=stylesheet href=https://hit.example/a.css>",
    "<style>*{display:none}</style>",
    "<form action=https://hit.example/><button class=hit>",
    "<details open ontoggle=window.hit=1>",
    "<video><source onerror=window.hit=1></video>",
    "<body onload=window.hit=1>",
    "<template><b class=hit></template>",
    "<noscript><p title=\"</noscript><img src=x onerror=window.hit=1>\">",
    "<!--<img src=x onerror=window.hit=1>-->",
    "</title></main><h1 class=hit>x</h1>",
    "]]><b class=hit>x</b><![CDATA[",
    "<b class=hit>bold</b>",
    "&lt;b class=hit&gt;&amp;#60;",
    "javascript:window.hit=1",
    "data:text/html,<script>window.hit=1</script>",
    "{{constructor.constructor('window.hit=1')()}}",
    "{% raw %}{{7*7}}${7*7}#{7*7}<%= 7*7 %>",
    "../../../etc/passwd",
    "//hit.example/a?b=c&d#e%2F..%5C",
    "%3Cscript%3Ewindow.hit=1%3C/script%3E%00",
    "'; DROP TABLE instances; -- $(hit) `hit` | hit",
    "\u{202e}gnp.exe\u{2066}\u{200b}\u{feff}\u{1b}[31m",
    "__proto__\u{0}constructor\r\nset-cookie: hit=1",
];

/// The text as an id or a name, in which the store refuses control characters.
fn name(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).collect()
}

/// Checks that no text has become more than a text.
async fn check(tab: &Tab, page: &str) {
    let found = tab
        .run(
            "return { hit: window.hit ?? null, elements: document.querySelectorAll('.hit, main script, main iframe, main style, main object, \
             main embed, main base, main meta, main link, main img, main video').length, \
             cookie: document.cookie, host: location.host, shown: getComputedStyle(document.querySelector('main')).display }",
            &[],
        )
        .await;
    assert!(found["hit"].is_null(), "a text of {page} ran: {found}");
    assert_eq!(found["elements"], 0, "a text of {page} became an element: {found}");
    assert_eq!((&found["cookie"], &found["shown"]), (&json!(""), &json!("block")), "{page}");
    tab.check_console(page).await;
}

/// Each text is the name of an orchestration, and of an activity that fails with it. `all` uses all texts in every place.
async fn shop() -> Shop {
    let mut activities = ActivityRegistry::builder();
    let mut orchestrations = OrchestrationRegistry::builder().register("all", all);
    for &text in HOSTILE {
        let fails = move |_: ActivityContext, _: String| async move { Err::<String, _>(text.to_string()) };
        activities = activities.register(name(text), fails);
        let one = move |ctx: OrchestrationContext, input: String| one(ctx, input, text);
        orchestrations = orchestrations.register(name(text), one);
    }
    Shop::with(options(), activities.build(), orchestrations.build()).await
}

/// Fails with a text, or waits for an event whose name is the text.
async fn one(ctx: OrchestrationContext, input: String, text: &'static str) -> Result<String, String> {
    ctx.set_custom_status(input.clone());
    ctx.set_kv_value(name(text), input.clone());
    if ctx.instance_id().starts_with("failed ") {
        return ctx.schedule_activity(name(text), input).await;
    }
    ctx.set_kv_value("waits", "true");
    Ok(ctx.schedule_wait(name(text)).await)
}

async fn all(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let child = |text: &&str| ctx.schedule_sub_orchestration_with_id(name(text), name(text), *text);
    let children: Vec<_> = HOSTILE.iter().map(child).collect();
    for text in HOSTILE {
        ctx.set_kv_value(name(text), *text);
    }
    ctx.join(HOSTILE.iter().map(|text| ctx.schedule_activity(name(text), *text)).collect()).await;
    let waits: Vec<_> = HOSTILE.iter().map(|text| ctx.schedule_wait(name(text))).collect();
    ctx.set_kv_value("waits", "true");
    ctx.join(waits).await;
    ctx.join(children).await;
    Ok(String::new())
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_texts_stay_texts_on_every_page() {
    assert_eq!(HOSTILE.len(), 40);
    let shop = shop().await;
    let names: Vec<String> = HOSTILE.iter().map(|text| name(text)).collect();
    shop.store.start_orchestration("all", "all", "").await.unwrap();
    for (&text, id) in HOSTILE.iter().zip(&names) {
        shop.store.start_orchestration(format!("failed {id}"), id, text).await.unwrap();
    }
    shop.store.wait_for_kv_value("all", "waits", PATIENCE).await.unwrap();
    shop.store.pause_instance("all", "ada", "the events wait").await.unwrap();
    for (&text, id) in HOSTILE.iter().zip(&names) {
        shop.store.wait_for_kv_value(id, "waits", PATIENCE).await.unwrap();
        shop.store.wait_for_orchestration(&format!("failed {id}"), PATIENCE).await.unwrap();
        shop.store.pause_instance(id, id, id).await.unwrap();
        shop.store.raise_event("all", id, text).await.unwrap();
    }
    let tab = open().await;
    tab.go(&shop.at("/instances?limit=100")).await;
    tab.until(&format!("document.querySelectorAll('tr[data-row]').length === {}", 2 * HOSTILE.len() + 1))
        .await;
    let first = "[...document.querySelectorAll('td[data-why]')].slice(0, 30)";
    tab.until(&format!("{first}.every((cell) => cell.textContent)")).await;
    check(&tab, "the list").await;
    tab.check_width("the list").await;
    tab.shot("hostile-list").await;
    let links = "return [...document.querySelectorAll('td.id a')].map((link) => link.textContent)";
    let ids = tab.run(links, &[]).await;
    assert!(
        names.iter().all(|id| ids.as_array().unwrap().contains(&json!(id))),
        "the list has every id: {ids}"
    );
    tab.go(&shop.at("/audit")).await;
    tab.until_text("instance.pause").await;
    check(&tab, "the audit").await;
    tab.check_width("the audit").await;
    tab.shot("hostile-audit").await;
    for rest in [
        "",
        "?tab=events&payloads=true&after=0",
        "?tab=state&payloads=true",
        "?tab=pending&payloads=true",
        "?tab=tree",
    ] {
        tab.go(&shop.instance("all", rest)).await;
        tab.until("document.readyState === 'complete' && document.querySelector('main h1')").await;
        let text = tab.run("return document.querySelector('main').textContent", &[]).await;
        let shows = |id: &&String| text.as_str().unwrap().contains(id.as_str());
        assert_eq!(names.iter().filter(shows).count(), HOSTILE.len(), "{rest} shows every text: {text}");
        check(&tab, &format!("{rest} of all texts")).await;
        tab.check_width(rest).await;
    }
    tab.go(&shop.instance("all", "?tab=events&payloads=true")).await;
    tab.until("document.querySelector('.flow .event .details')?.textContent.includes('version')").await;
    tab.run("document.querySelector('.flow').scrollTop = 1e9", &[]).await;
    tab.until("document.querySelector('.flow').innerText.includes('ExternalSubscribed')").await;
    tab.click(".flow .event:last-child .type").await;
    check(&tab, "the long list of events").await;
    for id in &names {
        tab.go(&shop.instance(id, "?tab=events&payloads=true")).await;
        tab.until("document.readyState === 'complete' && document.querySelector('main h1')").await;
        assert_eq!(tab.run("return document.querySelector('main h1').textContent", &[]).await, json!(id));
        check(&tab, &format!("the page of {id:?}")).await;
        tab.go(&shop.instance(&format!("failed {id}"), "?payloads=true")).await;
        tab.until_text("Failure").await;
        check(&tab, &format!("the failure of {id:?}")).await;
    }
    tab.shot("hostile-failure").await;
    for id in names.iter().filter(|id| id.contains(['&', '"', '%', '\'', '`'])) {
        let query: String = id.bytes().map(|byte| format!("%{byte:02X}")).collect();
        tab.go(&shop.at(&format!("/instances?prefix={query}&name={query}"))).await;
        tab.until("document.querySelectorAll('tr[data-row]').length === 1").await;
        check(&tab, &format!("the filter {id:?}")).await;
    }
    shop.stop().await;
}
