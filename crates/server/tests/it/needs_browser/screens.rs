//! Every screen, in light and dark mode, on a wide and on a narrow page, below a base path, with a login.

use super::shop::{BASE, LONG_ID, Shop, options, root_options};
use crate::kit::{token, with_tokens};
use outlast_browser::{Tab, open};
use outlast_server::Scope;

/// Waits until the scripts have filled in what the server leaves to the browser.
const SETTLED: &str = "document.readyState === 'complete' \
    && ![...document.querySelectorAll('td[data-why]')].slice(0, 30).some((cell) => !cell.textContent) \
    && ![...document.querySelectorAll('[data-count]')].some((place) => !place.textContent)";

/// The screens: the name of the screenshot, the address, and a text of the screen.
fn screens(shop: &Shop) -> Vec<(&'static str, String, &'static str)> {
    let of = |id: &str, rest: &str| shop.instance(id, rest);
    vec![
        ("instances", shop.at("/instances"), "order-1041"),
        ("instances-failed", shop.at("/instances?status=failed"), "order-1039"),
        ("instances-none", shop.at("/instances?prefix=nothing"), "No instance matches"),
        ("timeline", of("order-1041", ""), "Charge"),
        ("timeline-tries", of("order-1041", "?tries=true"), "fold retries"),
        ("timeline-ended", of("order-1038", ""), "Delivery"),
        ("timeline-fan-out", of("report-2026-11", ""), "Pack"),
        ("failed", of("order-1039", "?payloads=true"), "the bank declined the card"),
        ("paused", of("order-1042", ""), "paused"),
        ("events", of("order-1041", "?tab=events"), "ActivityScheduled"),
        ("events-payloads", of("order-1041", "?tab=events&payloads=true"), "Barbara"),
        ("state", of("order-1041", "?tab=state"), "Open operations"),
        ("state-payloads", of("order-1041", "?tab=state&at=12&payloads=true"), "after event 12"),
        ("pending", of("render-7", "?tab=pending"), "gpu"),
        ("pending-none", of("order-1041", "?tab=pending"), "Nothing is queued"),
        ("tree", of("order-1038", "?tab=tree"), "Delivery"),
        ("executions", of("monitor-eu", "?tab=events"), "execution"),
        ("long-id", of(LONG_ID, ""), "line-item"),
        ("queues", shop.at("/queues"), "Activities"),
        ("queues-items", shop.at("/queues?items=activities"), "render-7"),
        ("dead-letters", shop.at("/dead-letters"), "order-0977"),
        ("dead-letters-payloads", shop.at("/dead-letters?payloads=true"), "NoSuchMessage"),
        ("audit", shop.at("/audit"), "the address is wrong"),
        ("system", shop.at("/system"), "sqlite:shop.db"),
        ("problems", shop.at("/problems"), "scope_missing"),
        ("login", shop.at("/login"), "This server needs a token"),
    ]
}

async fn show(tab: &Tab, name: &str, address: &str, text: &str) {
    tab.go(address).await;
    tab.until(SETTLED).await;
    tab.until_text(text).await;
    tab.check(&format!("{name} at {address}")).await;
    if address.contains(BASE) {
        let outside = tab.run(OUTSIDE, &[]).await;
        assert_eq!(outside, serde_json::json!([]), "{name} at {address} leaves its base path");
    }
}

/// The addresses of a page that are not below the base path, nor on the page itself.
const OUTSIDE: &str = "return ['href', 'src', 'action', 'data-act', 'data-href'].flatMap((name) => \
    [...document.querySelectorAll(`[${name}]`)].map((element) => element.getAttribute(name))) \
    .filter((address) => !address.startsWith('/a/b/') && !address.startsWith('#') && !address.startsWith('?'))";

#[tokio::test(flavor = "multi_thread")]
async fn every_screen_is_readable_in_both_modes_and_on_a_phone() {
    let shop = Shop::busy(root_options()).await;
    shop.report_nodes().await;
    let tab = open().await;
    for (name, address, text) in screens(&shop) {
        show(&tab, name, &address, text).await;
        tab.shot(name).await;
    }
    tab.prefer("dark").await;
    for (name, address, text) in screens(&shop) {
        show(&tab, name, &address, text).await;
        tab.shot(&format!("{name}-dark")).await;
    }
    tab.prefer("light").await;
    tab.size(390, 844).await;
    for (name, address, text) in screens(&shop) {
        show(&tab, name, &address, text).await;
        tab.shot(&format!("{name}-phone")).await;
    }
    shop.stop().await;
}

/// The files that make the list of instances.
const LIST: [&str; 5] = [
    "crates/server/assets/style.css",
    "crates/server/assets/time.js",
    "crates/server/assets/why.js",
    "crates/server/templates/instances.html",
    "crates/server/templates/layout.html",
];
/// The files that make the page of an instance.
const INSTANCE: [&str; 4] = [
    "crates/server/assets/style.css",
    "crates/server/assets/time.js",
    "crates/server/templates/instance.html",
    "crates/server/templates/layout.html",
];

#[tokio::test(flavor = "multi_thread")]
async fn images_of_the_documents_show_a_shop() {
    let shop = Shop::busy(root_options()).await;
    let tab = open().await;
    tab.size(1120, 620).await;
    for (name, address, text, sources) in [
        ("instances", shop.at("/instances"), "order-1041", &LIST[..]),
        ("timeline", shop.instance("order-1041", ""), "Charge", &INSTANCE),
        ("state", shop.instance("order-1041", "?tab=state&at=21&payloads=true"), "after event 21", &INSTANCE),
    ] {
        show(&tab, name, &address, text).await;
        tab.document(name, sources).await;
    }
    shop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_store_says_so_on_every_screen() {
    let shop = Shop::open(options()).await;
    let tab = open().await;
    for (name, path, text) in [
        ("empty-instances", "/instances", "This store has no instances yet"),
        ("empty-queues", "/queues", "Turns"),
        ("empty-dead-letters", "/dead-letters", "There are no dead letters"),
        ("empty-audit", "/audit", "The audit has no records"),
        ("empty-system", "/system", "instances"),
    ] {
        show(&tab, name, &shop.at(path), text).await;
        tab.shot(name).await;
    }
    shop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dashboard_works_below_a_base_path() {
    let shop = Shop::busy(options()).await;
    let tab = open().await;
    for (name, address, text) in screens(&shop) {
        show(&tab, name, &address, text).await;
    }
    // Links and keys stay below the path.
    tab.go(&shop.at("/")).await;
    tab.until_text("order-1041").await;
    tab.click("a[title='order-1041']").await;
    tab.until_text("and no client has sent it").await;
    for tab_name in ["events", "state", "pending", "tree", "timeline"] {
        tab.click(&format!("[data-tab='{tab_name}']")).await;
        tab.until(&format!(
            "location.pathname.startsWith('/a/b/') && location.search.includes('tab={tab_name}')"
        ))
        .await;
    }
    tab.type_text("gq").await;
    tab.until("location.pathname === '/a/b/queues'").await;
    tab.check("queues below a path").await;
    shop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deep_link_shows_the_state_that_it_names() {
    let shop = Shop::busy(options()).await;
    let tab = open().await;
    tab.go(&shop.instance("order-1041", "?tab=state&at=5")).await;
    tab.until_text("after event 5 of").await;
    tab.click("[data-step='after']").await;
    tab.until_text("after event 6 of").await;
    assert!(tab.address().await.contains("at=6"), "{}", tab.address().await);
    tab.back().await;
    tab.until_text("after event 5 of").await;
    // The slider changes the address too, so that it can be sent to another person.
    tab.run(
        "const slider = document.querySelector('[data-scrub]'); slider.value = 9; \
         slider.dispatchEvent(new Event('input', { bubbles: true }))",
        &[],
    )
    .await;
    tab.until_text("after event 9 of").await;
    assert!(tab.address().await.ends_with("at=9"), "{}", tab.address().await);
    tab.go(&shop.instance("monitor-eu", "?tab=events&execution=2")).await;
    tab.until("document.querySelector('.executions [aria-current]').textContent === '2'").await;
    tab.go(&shop.at("/instances?status=Running&name=Order&prefix=order-104")).await;
    tab.until("document.querySelectorAll('tr[data-row]').length === 3").await;
    assert_eq!(tab.run("return document.getElementById('filter').value", &[]).await, "order-104");
    tab.check("filtered list").await;
    shop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn login_opens_the_dashboard_and_logout_closes_it() {
    let shop = Shop::busy(with_tokens(options())).await;
    let tab = open().await;
    tab.go(&shop.at("/login")).await;
    tab.check("login").await;
    tab.type_text(&token(Scope::Operate)).await;
    tab.click("button.primary").await;
    tab.until_text("order-1041").await;
    tab.check("list after the login").await;
    assert!(!tab.run("return document.cookie", &[]).await.as_str().unwrap().contains("token"));
    tab.click("[data-logout]").await;
    tab.until_text("This server needs a token").await;
    tab.check("login after the logout").await;
    // The link that the command prints; the token leaves the address.
    tab.go(&shop.at(&format!("/login#token={}", token(Scope::Read)))).await;
    tab.until_text("order-1041").await;
    assert!(!tab.address().await.contains("token"));
    tab.go(&shop.instance("order-1041", "")).await;
    tab.until_text("and no client has sent it").await;
    assert_eq!(tab.run("return document.querySelector('[data-open]')", &[]).await, serde_json::Value::Null);
    tab.check("instance for the scope read").await;
    shop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn theme_stays_chosen() {
    let shop = Shop::open(options()).await;
    let tab = open().await;
    tab.prefer("light").await;
    tab.go(&shop.at("/queues")).await;
    let background = "getComputedStyle(document.body).backgroundColor";
    tab.until(&format!("{background} === 'rgb(251, 251, 252)'")).await;
    tab.click("[data-theme-toggle]").await;
    tab.until(&format!("{background} === 'rgb(20, 22, 26)'")).await;
    tab.go(&shop.at("/system")).await;
    tab.until(&format!("{background} === 'rgb(20, 22, 26)'")).await;
    tab.check("chosen dark mode").await;
    shop.stop().await;
}
