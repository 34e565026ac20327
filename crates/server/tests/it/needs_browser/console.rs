//! The checks of pages themselves: each finds a page that breaks its rule.

use super::shop::{Shop, options};
use outlast_browser::open;
use std::panic::AssertUnwindSafe;

/// Whether a check fails.
async fn fails(check: impl Future<Output = ()>) -> bool {
    use futures::FutureExt;
    AssertUnwindSafe(check).catch_unwind().await.is_err()
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_find_pages_that_break_their_rules() {
    let shop = Shop::open(options()).await;
    let tab = open().await;
    // This page does not read itself again, so that the changes of the test stay.
    tab.go(&shop.at("/problems")).await;
    tab.check("problems").await;
    tab.run("console.error('wrong')", &[]).await;
    assert!(fails(tab.check_console("console")).await);
    assert!(!fails(tab.check_console("console")).await, "lines are reported once");
    // The content security policy refuses an inline script, and the console says so.
    let script = "const script = document.createElement('script'); script.textContent = 'window.ran = 1'; document.body.append(script)";
    tab.run(script, &[]).await;
    assert!(tab.run("return window.ran ?? null", &[]).await.is_null());
    assert!(fails(tab.check_console("inline script")).await);
    tab.run("document.querySelector('main').append(document.createElement('button'))", &[]).await;
    assert!(fails(tab.check_names("button without a name")).await);
    tab.run("document.querySelector('h1').style.color = 'rgb(190 190 190)'", &[]).await;
    assert!(fails(tab.check_contrast("grey heading")).await);
    tab.run("document.querySelector('h1').style.width = '3000px'", &[]).await;
    assert!(fails(tab.check_width("wide heading")).await);
    shop.stop().await;
}
