//! Pages that change while work runs, in one tab and in seven.

use super::shop::{Shop, options};
use crate::kit::PATIENCE;
use outlast_browser::open;

/// Marks the document, so that a reload is noticed.
const MARK: &str = "window.isTheSame = true";

#[tokio::test(flavor = "multi_thread")]
async fn list_and_instance_change_while_work_runs() {
    let shop = Shop::open(options()).await;
    let tab = open().await;
    tab.go(&shop.at("/instances")).await;
    tab.until_text("This store has no instances yet").await;
    tab.run(MARK, &[]).await;
    shop.store.start_orchestration("order-1", "Order", r#"{"items":["lamp"]}"#).await.unwrap();
    tab.until_some("a[title='order-1']").await;
    tab.until_text(" for event 'approval', and no client has sent it").await;
    shop.store.start_orchestration("order-2", "Order", r#"{"items":["desk"]}"#).await.unwrap();
    tab.until_some("a[title='order-2']").await;
    assert_eq!(tab.run("return window.isTheSame", &[]).await, true, "no reload");
    tab.go(&shop.instance("order-1", "")).await;
    tab.until_text(" for event 'approval', and no client has sent it").await;
    tab.run(MARK, &[]).await;
    // A field of a dialog keeps its text and the focus while the page changes behind it.
    tab.run("document.getElementById('main').focus()", &[]).await;
    shop.store.raise_event("order-1", "approval", "granted").await.unwrap();
    tab.until("document.querySelector('.facts .status').textContent === 'Completed'").await;
    tab.until_text("Delivery").await;
    assert_eq!(tab.run("return window.isTheSame", &[]).await, true, "no reload");
    // An ended instance has no stream and no buttons.
    tab.until("!document.body.hasAttribute('data-live') && document.getElementById('live').hidden").await;
    tab.until("!document.querySelector('[data-open]')").await;
    tab.check("instance that has ended").await;
    shop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn seven_tabs_stay_live_with_one_stream() {
    let shop = Shop::open(options()).await;
    let ids: Vec<String> = (1..=7).map(|number| format!("order-{number}")).collect();
    for id in &ids {
        shop.store.start_orchestration(id.as_str(), "Order", r#"{"items":["lamp"]}"#).await.unwrap();
        shop.store.wait_for_kv_value(id, "paid", PATIENCE).await.unwrap();
    }
    let tab = open().await;
    let mut windows = tab.windows().await;
    for _ in 1..7 {
        windows.push(tab.open_window().await);
    }
    for (window, id) in windows.iter().zip(&ids) {
        tab.switch(window).await;
        tab.go(&shop.instance(id, "")).await;
        tab.until_text(" for event 'approval', and no client has sent it").await;
        tab.run(MARK, &[]).await;
    }
    tab.until(&format!(
        "(() => {{ const request = new XMLHttpRequest(); request.open('GET', '{}', false); request.send(); \
         return /^outlast_sse_clients 1$/m.test(request.responseText); }})()",
        shop.at("/metrics")
    ))
    .await;
    for id in &ids {
        shop.store.raise_event(id.as_str(), "approval", "granted").await.unwrap();
    }
    for window in &windows {
        tab.switch(window).await;
        assert_eq!(tab.run("return document.hidden", &[]).await, false, "the tab is visible");
        tab.until("document.querySelector('.facts .status').textContent === 'Completed'").await;
        assert_eq!(tab.run("return window.isTheSame", &[]).await, true, "no reload");
        tab.check_console("one of seven tabs").await;
    }
    shop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plots_of_the_system_grow_while_the_page_is_open() {
    let shop = Shop::open(options()).await;
    shop.store.start_orchestration("order-1", "Order", r#"{"items":["lamp"]}"#).await.unwrap();
    shop.store.wait_for_kv_value("order-1", "paid", PATIENCE).await.unwrap();
    let tab = open().await;
    tab.go(&shop.at("/system")).await;
    tab.until_text("Plots appear with the second sample").await;
    tab.run(MARK, &[]).await;
    tab.until("document.querySelectorAll('.plots svg').length === 4").await;
    tab.until_text("running instances 1").await;
    for number in 2..=4 {
        shop.store.start_orchestration(format!("order-{number}"), "Order", "{}").await.unwrap();
    }
    tab.until_text("running instances 4").await;
    assert_eq!(tab.run("return window.isTheSame", &[]).await, true, "no reload");
    tab.check("plots").await;
    tab.shot("system-plots").await;
    shop.stop().await;
}
