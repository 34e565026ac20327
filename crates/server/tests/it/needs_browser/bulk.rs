//! Changes of many instances from the list: all that match, selected rows, and a set that has changed.

use super::shop::{Shop, options};
use crate::kit::PATIENCE;
use outlast::OrchestrationStatus;
use outlast_browser::{Tab, open};

/// Waits until the dialog shows a text.
async fn until_dialog(tab: &Tab, text: &str) {
    tab.until(&format!("document.querySelector('dialog#bulk[open]')?.innerText.includes('{text}')")).await;
}

async fn confirm(tab: &Tab) {
    tab.click("dialog#bulk input[name=reason]").await;
    tab.type_text("the warehouse burns").await;
    tab.click("dialog#bulk button.primary").await;
}

async fn is_held(shop: &Shop, id: &str) -> bool {
    shop.store.held_instance(id).await.unwrap().is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_with_a_changed_set_is_refused() {
    let shop = Shop::busy(options()).await;
    let tab = open().await;
    tab.go(&shop.at("/instances?name=Order&prefix=order-104")).await;
    tab.until_text("With all instances that match").await;
    tab.click("[data-bulk='cancel']").await;
    until_dialog(&tab, "3 running instances match").await;
    until_dialog(&tab, "order-1041").await;
    tab.check("dialog of an operation").await;
    tab.shot("bulk").await;
    // An order of the set ends behind the dialog.
    shop.store.raise_event("order-1041", "approval", "granted").await.unwrap();
    shop.store.wait_for_orchestration("order-1041", PATIENCE).await.unwrap();
    confirm(&tab).await;
    until_dialog(&tab, "3 instances matched, and 2 match now").await;
    tab.check_contrast("refused operation").await;
    tab.shot("bulk-refused").await;
    // The count is taken again, and the reason stays.
    tab.click("dialog#bulk button.primary").await;
    until_dialog(&tab, "2 running instances match").await;
    until_dialog(&tab, "Cancel 2 instances").await;
    assert_eq!(
        tab.run("return document.querySelector('dialog#bulk input').value", &[]).await,
        "the warehouse burns"
    );
    for id in ["order-1040", "order-1042"] {
        let status = shop.store.get_orchestration_status(id).await.unwrap();
        assert!(matches!(status, OrchestrationStatus::Running { .. }), "{id}: {status:?}");
    }
    // The browser reports the refused request in its console, as it does for each status above 399.
    let logged = tab.logged().await;
    assert!(logged.iter().all(|line| line.contains("409")), "{logged:?}");
    shop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn selected_rows_are_paused_and_all_matching_ones_resumed() {
    let shop = Shop::busy(options()).await;
    let tab = open().await;
    tab.go(&shop.at("/instances")).await;
    tab.click("input[value='order-1040']").await;
    tab.click("input[value='order-1041']").await;
    // A finished instance is selected too; the operation leaves it alone.
    tab.click("input[value='order-1038']").await;
    tab.until_text("With 3 selected instances:").await;
    tab.check("list with selected rows").await;
    tab.shot("instances-selected").await;
    tab.click("[data-bulk='pause']").await;
    until_dialog(&tab, "2 instances are running among the 3 selected instances").await;
    confirm(&tab).await;
    until_dialog(&tab, "Done: 2 of 2 instances changed.").await;
    tab.check("operation that has ended").await;
    tab.shot("bulk-done").await;
    assert!(is_held(&shop, "order-1040").await && is_held(&shop, "order-1041").await);
    tab.click("dialog#bulk [data-close]").await;
    tab.until("!document.querySelector('dialog[open]')").await;
    // The selection survives the update of the page; without it all instances that match are meant.
    tab.until_text("With 3 selected instances:").await;
    tab.click("[data-pick-all]").await;
    tab.click("[data-pick-all]").await;
    tab.until_text("With all instances that match:").await;
    tab.click("[data-bulk='resume']").await;
    until_dialog(&tab, "3 held instances match").await;
    confirm(&tab).await;
    until_dialog(&tab, "Done: 3 of 3 instances changed.").await;
    assert!(!is_held(&shop, "order-1040").await && !is_held(&shop, "order-1042").await);
    tab.size(390, 844).await;
    tab.go(&shop.at("/instances")).await;
    tab.until_text("With all instances that match:").await;
    tab.check("list with an operation on a phone").await;
    tab.shot("instances-select-phone").await;
    shop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operation_is_stopped_from_the_page() {
    let mut options = options();
    options.operation_rate = 1;
    let shop = Shop::busy(options).await;
    let tab = open().await;
    tab.go(&shop.at("/instances?name=Order")).await;
    tab.click("[data-bulk='pause']").await;
    until_dialog(&tab, "running instances match").await;
    confirm(&tab).await;
    tab.until_some("[data-bulk-stop]:not([hidden])").await;
    tab.until("document.querySelector('#bulk-reason').checkVisibility() === false").await;
    tab.shot("bulk-running").await;
    tab.click("[data-bulk-stop]").await;
    until_dialog(&tab, "Stopped: ").await;
    tab.check("stopped operation").await;
    let audit = shop.store.audit_page(None, 100).await.unwrap().unwrap();
    assert!(audit.iter().any(|record| record.entry.action == "operation.stop"));
    shop.stop().await;
}
