//! Changes from the page: events, pause and resume, cancellation, and refusals.

use super::shop::{Shop, options};
use crate::kit::PATIENCE;
use outlast::OrchestrationStatus;
use outlast_browser::open;

#[tokio::test(flavor = "multi_thread")]
async fn instance_is_cancelled_from_the_page_with_a_reason() {
    let shop = Shop::busy(options()).await;
    let tab = open().await;
    tab.go(&shop.instance("order-1041", "")).await;
    tab.click("[data-open='cancel']").await;
    tab.until_some("dialog#cancel[open]").await;
    tab.check("dialog that cancels").await;
    tab.shot("dialog").await;
    // Without a reason the form is not sent.
    tab.click("dialog#cancel button.primary").await;
    tab.until_some("dialog#cancel[open] input:invalid").await;
    tab.click("dialog#cancel input").await;
    tab.type_text("the customer called").await;
    tab.click("dialog#cancel button.primary").await;
    tab.until("!document.querySelector('dialog[open]')").await;
    tab.until("document.querySelector('.facts .status').textContent === 'Failed'").await;
    tab.until_text("cancelled").await;
    tab.check("cancelled instance").await;
    tab.shot("cancelled").await;
    let ended = shop.store.wait_for_orchestration("order-1041", PATIENCE).await.unwrap();
    assert!(matches!(ended, OrchestrationStatus::Failed { .. }), "{ended:?}");
    tab.go(&shop.at("/audit")).await;
    tab.until_text("the customer called").await;
    tab.until_text("instance.cancel").await;
    shop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_instance_is_resumed_and_its_event_is_sent() {
    let shop = Shop::busy(options()).await;
    let tab = open().await;
    tab.go(&shop.instance("order-1042", "")).await;
    tab.click("[data-open='resume']").await;
    tab.click("dialog#resume input").await;
    tab.type_text("the address is right now").await;
    tab.click("dialog#resume button.primary").await;
    tab.until_some("[data-open='pause']").await;
    tab.click("[data-open='send']").await;
    tab.click("dialog#send input[name=name]").await;
    tab.type_text("approval").await;
    tab.click("dialog#send textarea").await;
    tab.type_text("granted by hand").await;
    tab.click("dialog#send input[name=reason]").await;
    tab.type_text("asked on the phone").await;
    tab.shot("dialog-send").await;
    tab.click("dialog#send button.primary").await;
    tab.until("document.querySelector('.facts .status').textContent === 'Completed'").await;
    tab.check("completed instance").await;
    let ended = shop.store.wait_for_orchestration("order-1042", PATIENCE).await.unwrap();
    let OrchestrationStatus::Completed { output, .. } = ended else { panic!("{ended:?}") };
    assert!(output.contains("granted by hand"), "{output}");
    shop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letter_is_dropped_from_the_page_with_a_reason() {
    let shop = Shop::busy(options()).await;
    let tab = open().await;
    tab.go(&shop.at("/dead-letters")).await;
    tab.until_text("order-0977").await;
    tab.click("[data-open^='drop-']").await;
    tab.until_some("dialog[id^='drop-'][open]").await;
    tab.click("dialog[id^='drop-'] input").await;
    tab.type_text("the message is from a test").await;
    tab.click("dialog[id^='drop-'] button.primary").await;
    tab.until_text("There are no dead letters").await;
    tab.check("dead letters after a drop").await;
    assert_eq!(shop.store.list_dead_letters(10).await.unwrap().len(), 0);
    tab.go(&shop.at("/audit")).await;
    tab.until_text("the message is from a test").await;
    tab.until_text("dead-letter.drop").await;
    shop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn items_of_a_queue_lead_to_their_instances() {
    let shop = Shop::busy(options()).await;
    let tab = open().await;
    tab.go(&shop.at("/queues")).await;
    tab.until_text("gpu").await;
    tab.click("a[href$='items=activities#items']").await;
    tab.until("document.getElementById('items').textContent === 'Activities'").await;
    tab.click("#items + table a[title='render-7']").await;
    tab.until("location.pathname.endsWith('/instances/render-7') && location.search === '?tab=pending'")
        .await;
    tab.until_text("gpu").await;
    tab.check("instance of a queued activity").await;
    shop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn change_that_the_server_refuses_is_explained_in_the_dialog() {
    let shop = Shop::busy(options()).await;
    let tab = open().await;
    tab.go(&shop.instance("order-1041", "")).await;
    tab.click("[data-open='cancel']").await;
    tab.click("dialog#cancel input").await;
    // The page does not change while a dialog is open, so the instance ends behind it.
    shop.store.raise_event("order-1041", "approval", "granted").await.unwrap();
    shop.store.wait_for_orchestration("order-1041", PATIENCE).await.unwrap();
    tab.type_text("too late").await;
    tab.click("dialog#cancel button.primary").await;
    tab.until("document.querySelector('dialog#cancel .error').textContent.includes('ended')").await;
    tab.check_contrast("refused change").await;
    tab.shot("dialog-refused").await;
    shop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_server_has_no_buttons_that_change_instances() {
    let mut options = options();
    options.operate = false;
    let shop = Shop::busy(options).await;
    let tab = open().await;
    tab.go(&shop.instance("order-1041", "")).await;
    tab.until_text(" for event 'approval', and no client has sent it").await;
    assert_eq!(
        tab.run("return document.querySelectorAll('[data-open], form[data-act]').length", &[]).await,
        0
    );
    tab.check("instance of a read-only server").await;
    shop.stop().await;
}
