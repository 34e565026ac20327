//! The dashboard without a mouse.

use super::shop::{BASE, Shop, options};
use crate::kit::PATIENCE;
use outlast_browser::{Key, open};

#[tokio::test(flavor = "multi_thread")]
async fn instance_is_found_and_cancelled_with_keys_only() {
    let shop = Shop::busy(options()).await;
    let tab = open().await;
    tab.go(&shop.at("/instances")).await;
    tab.type_text("/").await;
    tab.until("document.activeElement.id === 'filter'").await;
    tab.type_text("order-104").await;
    tab.press(Key::Enter).await;
    tab.until("location.search.includes('prefix=order-104') && document.querySelectorAll('tr[data-row]').length === 3").await;
    tab.type_text("jjk").await;
    tab.until("document.querySelector('tr.chosen a').textContent === 'order-1042'").await;
    tab.shot("keyboard-chosen").await;
    tab.type_text("j").await;
    tab.press(Key::Enter).await;
    tab.until("location.pathname.endsWith('/order-1041')").await;
    tab.tab_to("[data-open='cancel']").await;
    assert_ne!(
        tab.run("return getComputedStyle(document.activeElement).outlineStyle", &[]).await,
        "none",
        "the focus is visible"
    );
    tab.press(Key::Enter).await;
    tab.until("document.querySelector('dialog#cancel[open]')?.contains(document.activeElement)").await;
    tab.tab_to("dialog#cancel input[name=reason]").await;
    tab.type_text("with keys").await;
    tab.press(Key::Enter).await;
    tab.until("document.querySelector('.facts .status').textContent === 'Failed'").await;
    tab.check_console("keyboard").await;
    shop.store.wait_for_orchestration("order-1041", PATIENCE).await.unwrap();
    shop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_open_screens_and_the_help() {
    let shop = Shop::busy(options()).await;
    let tab = open().await;
    tab.go(&shop.at("/instances")).await;
    for (keys, path) in [
        ("gq", "/queues"),
        ("gd", "/dead-letters"),
        ("ga", "/audit"),
        ("gs", "/system"),
        ("gi", "/instances"),
    ] {
        tab.type_text(keys).await;
        tab.until(&format!("location.pathname === '{BASE}{path}' && document.readyState === 'complete'"))
            .await;
        tab.until("document.querySelector('[aria-current=page]')").await;
    }
    tab.type_text("gn").await;
    let nodes = format!("location.pathname + location.hash === '{BASE}/queues#nodes'");
    tab.until(&format!("{nodes} && document.readyState === 'complete'")).await;
    tab.type_text("?").await;
    tab.until_some("dialog#help[open]").await;
    tab.check("help").await;
    tab.shot("help").await;
    tab.press(Key::Escape).await;
    tab.until("!document.querySelector('dialog[open]')").await;
    tab.go(&shop.instance("order-1041", "?tab=state&at=5")).await;
    tab.type_text("]").await;
    tab.until_text("after event 6 of").await;
    tab.type_text("[").await;
    tab.until_text("after event 5 of").await;
    // The slider moves with the arrows.
    tab.tab_to("[data-scrub]").await;
    tab.press(Key::Right).await;
    tab.until_text("after event 6 of").await;
    tab.until("document.activeElement.matches('[data-scrub]')").await;
    tab.go(&shop.at("/instances")).await;
    tab.press(Key::Tab).await;
    tab.until("document.activeElement.matches('.skip')").await;
    tab.press(Key::Enter).await;
    tab.until("document.activeElement.id === 'main'").await;
    tab.check_console("keys").await;
    shop.stop().await;
}
