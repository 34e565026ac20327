//! Large histories and stores. The tests print the times that they measure, and bound them: generously, because other tests run beside
//! them, and strictly with `OUTLAST_TEST_STRICT=1`, for a quiet machine. docs/performance.md has its figures.

use super::shop::{Shop, options};
use crate::kit::{PATIENCE, fill};
use outlast_browser::{Key, open};

/// The events of the long history, about.
const EVENTS: u64 = 20_000;
/// The finished instances of the large store; `OUTLAST_TEST_INSTANCES` takes their place.
const INSTANCES: u64 = 20_000;

/// A bound in milliseconds: the first one with `OUTLAST_TEST_STRICT=1`, otherwise the second one.
fn bound(strict: f64, generous: f64) -> f64 {
    let is_strict = std::env::var("OUTLAST_TEST_STRICT").is_ok_and(|value| value == "1");
    if is_strict { strict } else { generous }
}

/// Scrolls for four seconds, half a window per frame, and returns the times between frames and the number of elements.
const SCROLL: &str = "
const done = arguments[arguments.length - 1];
const view = document.querySelector('.flow');
const times = [];
let most = 0;
let last = performance.now();
const step = (now) => {
  times.push(now - last);
  last = now;
  most = Math.max(most, document.querySelectorAll('*').length);
  view.scrollTop += view.clientHeight / 2;
  if (times.length < 240) return requestAnimationFrame(step);
  times.sort((a, b) => a - b);
  done({ p50: times[120], p95: times[228], elements: most });
};
requestAnimationFrame(step);";

#[tokio::test(flavor = "multi_thread")]
async fn long_history_scrolls_with_few_elements() {
    let shop = Shop::open(options()).await;
    shop.store.start_orchestration("archive", "Archive", EVENTS.to_string()).await.unwrap();
    shop.store.wait_for_kv_value("archive", "archived", PATIENCE * 4).await.unwrap();
    let tab = open().await;
    tab.go(&shop.instance("archive", "?tab=events&payloads=true")).await;
    tab.until_some(".flow .event").await;
    let shows = |number: u64| {
        format!("document.querySelector('.flow .space').innerText.includes('{{\"number\":{number}}}')")
    };
    tab.until(&shows(3)).await;
    tab.check("long history").await;
    tab.shot("history").await;
    let found = tab.run_later(SCROLL, &[]).await;
    println!("{EVENTS} events: {found}");
    assert!(found["elements"].as_u64().expect("a count of elements") < 500, "{found}");
    // A display with 60 frames per second shows one each 16.7 ms.
    assert!(found["p50"].as_f64().expect("a time between frames") < bound(20.0, 250.0), "{found}");
    // Every row is filled when the scrolling ends, also with events that were never in view before.
    tab.until(
        "![...document.querySelectorAll('.flow .event .type')].some((cell) => cell.textContent === '…')",
    )
    .await;
    tab.run("document.querySelector('.flow').scrollTop = 1e9", &[]).await;
    tab.until(&shows(EVENTS - 1)).await;
    // A new event appears at the end, and the place stays.
    shop.store.raise_event("archive", "more", "").await.unwrap();
    tab.until("[...document.querySelectorAll('.flow .type')].some((cell) => cell.textContent === 'OrchestrationCompleted')")
        .await;
    // A click shows the whole event; the number leads to the state.
    tab.click(".flow .event .type").await;
    tab.until("document.querySelector('.whole').textContent.startsWith('event ')").await;
    tab.shot("history-end").await;
    tab.tab_to(".flow").await;
    tab.press(Key::Tab).await;
    tab.press(Key::Enter).await;
    tab.until("location.search.includes('tab=state') && document.querySelector('.scrub')").await;
    tab.check_console("state of a long history").await;
    tab.size(390, 844).await;
    tab.go(&shop.instance("archive", "?tab=events")).await;
    tab.until_some(".flow .event").await;
    tab.check("long history on a phone").await;
    tab.shot("history-phone").await;
    shop.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn list_of_a_large_store_is_painted_at_once() {
    let count = std::env::var("OUTLAST_TEST_INSTANCES").ok().and_then(|count| count.parse().ok());
    let count: u64 = count.unwrap_or(INSTANCES);
    let shop = Shop::busy(options()).await;
    // Older than those of the shop.
    fill(&shop.file(), 0, count);
    let tab = open().await;
    let (mut answers, mut paints) = (Vec::new(), Vec::new());
    for _ in 0..9 {
        tab.go(&shop.at("/instances")).await;
        tab.until("performance.getEntriesByName('first-contentful-paint').length === 1").await;
        let times = "return [performance.getEntriesByType('navigation')[0].responseStart, \
                     performance.getEntriesByName('first-contentful-paint')[0].startTime]";
        let times = tab.run(times, &[]).await;
        answers.push(times[0].as_f64().unwrap());
        paints.push(times[1].as_f64().unwrap());
        // The totals cost a scan of the store. The next visit begins when they are shown.
        tab.until("![...document.querySelectorAll('[data-count]')].some((place) => !place.textContent)")
            .await;
    }
    answers.sort_by(f64::total_cmp);
    paints.sort_by(f64::total_cmp);
    println!(
        "{count} instances: answer after {:.0} ms, first paint after {:.0} ms (medians of 9)",
        answers[4], paints[4]
    );
    assert!(paints[4] < bound(300.0, 2_000.0), "{paints:?}");
    tab.check("list of a large store").await;
    shop.stop().await;
}
