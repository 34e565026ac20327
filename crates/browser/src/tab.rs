//! The window that a test uses.

use crate::driver::{Browser, shared};
use crate::wire::Refused;
use hyper::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// The longest time until a condition holds. Pages that have no stream read themselves every two seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time between two looks at a condition.
const LOOK: Duration = Duration::from_millis(20);
/// The key of an element's id in an answer of WebDriver.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// The browser, while a test uses it.
pub struct Tab {
    browser: Arc<Browser>,
    /// The turn ends before the browser is given back, because fields are dropped in their order.
    _turn: OwnedMutexGuard<()>,
}

/// A key that is no character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Enter.
    Enter,
    /// Tab.
    Tab,
    /// Escape.
    Escape,
    /// The right arrow.
    Right,
}

impl Key {
    /// The character that stands for the key in WebDriver.
    fn code(self) -> char {
        match self {
            Self::Enter => '\u{e007}',
            Self::Tab => '\u{e004}',
            Self::Escape => '\u{e00c}',
            Self::Right => '\u{e014}',
        }
    }
}

/// Waits until no other test uses the browser, and resets its window.
pub async fn open() -> Tab {
    let browser = shared().await;
    let turn = Arc::clone(&browser.turn).lock_owned().await;
    let tab = Tab { browser, _turn: turn };
    tab.reset().await;
    tab
}

impl Tab {
    pub(crate) async fn try_ask(&self, method: Method, path: &str, body: Value) -> Result<Value, Refused> {
        self.browser.ask(method, path, &body).await
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, body: Value) -> Value {
        let answer = self.try_ask(method, path, body).await;
        answer.unwrap_or_else(|refused| panic!("the browser refused {path}: {refused}"))
    }

    /// Sends a command of the Chrome DevTools protocol.
    pub(crate) async fn devtools(&self, command: &str, params: Value) -> Value {
        self.ask(Method::POST, "/goog/cdp/execute", json!({"cmd": command, "params": params})).await
    }

    async fn reset(&self) {
        let _ = self.try_ask(Method::POST, "/alert/dismiss", json!({})).await;
        let windows = self.windows().await;
        for window in &windows[1..] {
            self.switch(window).await;
            self.ask(Method::DELETE, "/window", json!({})).await;
        }
        self.switch(&windows[0]).await;
        self.go("about:blank").await;
        self.devtools("Network.clearBrowserCookies", json!({})).await;
        self.devtools("Emulation.setEmulatedMedia", json!({"features": []})).await;
        // A test before this one may have left the focus in another window.
        self.devtools("Emulation.setFocusEmulationEnabled", json!({"enabled": true})).await;
        self.size(1280, 800).await;
        self.logged().await;
    }

    /// Opens an address, and waits until the page is loaded.
    pub async fn go(&self, address: &str) {
        self.ask(Method::POST, "/url", json!({"url": address})).await;
    }

    /// The address of the page.
    pub async fn address(&self) -> String {
        self.ask(Method::GET, "/url", json!({})).await.as_str().expect("a text").to_string()
    }

    /// Goes back in the history of the window.
    pub async fn back(&self) {
        self.ask(Method::POST, "/back", json!({})).await;
    }

    /// Runs the body of a function, and returns its value.
    pub async fn run(&self, script: &str, args: &[Value]) -> Value {
        self.ask(Method::POST, "/execute/sync", json!({"script": script, "args": args})).await
    }

    /// Runs the body of a function whose last argument is called with the value.
    pub async fn run_later(&self, script: &str, args: &[Value]) -> Value {
        self.ask(Method::POST, "/execute/async", json!({"script": script, "args": args})).await
    }

    /// Waits until an expression is true.
    pub async fn until(&self, expression: &str) {
        let script = json!({"script": format!("return Boolean({expression})"), "args": []});
        let mut last = None;
        let looks = async {
            let mut looks = interval(LOOK);
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                looks.tick().await;
                match self.try_ask(Method::POST, "/execute/sync", script.clone()).await {
                    Ok(value) if value == true => return,
                    Ok(_) => {}
                    // The page may be between two documents.
                    Err(refused) => last = Some(refused.to_string()),
                }
            }
        };
        if timeout(PATIENCE, looks).await.is_err() {
            self.fail(&format!("the page never fulfils {expression} ({last:?})")).await;
        }
    }

    /// Waits until the visible text of the page contains a text.
    pub async fn until_text(&self, text: &str) {
        self.until(&format!("document.body.innerText.includes({})", json!(text))).await;
    }

    /// Waits until an element matches the selector.
    pub async fn until_some(&self, selector: &str) {
        self.until(&format!("document.querySelector({})", json!(selector))).await;
    }

    /// Clicks the first element of the selector as a visitor does: it must be visible, enabled, and not be covered.
    pub async fn click(&self, selector: &str) {
        let mut last = String::new();
        let clicks = async {
            let mut looks = interval(LOOK);
            loop {
                looks.tick().await;
                match self.try_click(selector).await {
                    Ok(()) => return,
                    Err(refused) => last = refused.to_string(),
                }
            }
        };
        if timeout(PATIENCE, clicks).await.is_err() {
            self.fail(&format!("{selector} cannot be clicked: {last}")).await;
        }
    }

    async fn try_click(&self, selector: &str) -> Result<(), Refused> {
        let using = json!({"using": "css selector", "value": selector});
        let found = self.try_ask(Method::POST, "/element", using).await?;
        let id = found[ELEMENT].as_str().expect("the id of the element");
        let enabled = self.try_ask(Method::GET, &format!("/element/{id}/enabled"), json!({})).await?;
        if enabled == false {
            return Err(Refused::disabled());
        }
        self.try_ask(Method::POST, &format!("/element/{id}/click"), json!({})).await.map(|_| ())
    }

    /// Types a text into the element that has the focus.
    pub async fn type_text(&self, text: &str) {
        self.keys(text.chars()).await;
    }

    /// Presses a key.
    pub async fn press(&self, key: Key) {
        self.keys([key.code()]).await;
    }

    /// Chromium drops keys before a page is painted, and a visitor presses none then.
    async fn keys(&self, keys: impl IntoIterator<Item = char>) {
        self.until("performance.getEntriesByName('first-contentful-paint').length > 0").await;
        let stroke = |key: char| {
            let key = key.to_string();
            [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
        };
        let strokes: Vec<Value> = keys.into_iter().flat_map(stroke).collect();
        let actions = json!({"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]});
        self.ask(Method::POST, "/actions", actions).await;
    }

    /// Presses Tab until the element that has the focus matches the selector.
    pub async fn tab_to(&self, selector: &str) {
        let is_there = format!("return document.activeElement.matches({})", json!(selector));
        for _ in 0..200 {
            if self.run(&is_there, &[]).await == true {
                return;
            }
            self.press(Key::Tab).await;
        }
        self.fail(&format!("{selector} cannot be reached with the key Tab")).await;
    }

    /// Sets the size of the page in pixels. Narrow pages are those of a phone.
    pub async fn size(&self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        self.devtools("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// Prefers a colour scheme: `light` or `dark`.
    pub async fn prefer(&self, scheme: &str) {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.devtools("Emulation.setEmulatedMedia", features).await;
    }

    /// The windows, the first one first.
    pub async fn windows(&self) -> Vec<String> {
        let answer = self.ask(Method::GET, "/window/handles", json!({})).await;
        let handles = answer.as_array().expect("a list");
        handles.iter().map(|handle| handle.as_str().expect("a text").to_string()).collect()
    }

    /// Opens another window and uses it.
    pub async fn open_window(&self) -> String {
        let answer = self.ask(Method::POST, "/window/new", json!({"type": "window"})).await;
        let handle = answer["handle"].as_str().expect("a text").to_string();
        self.switch(&handle).await;
        handle
    }

    /// Uses another window.
    pub async fn switch(&self, window: &str) {
        self.ask(Method::POST, "/window", json!({"handle": window})).await;
    }

    /// Ends the test. The message has the address and the text of the page, and a screenshot is kept.
    pub(crate) async fn fail(&self, message: &str) -> ! {
        let kept = self.shot("failed").await;
        let text = self.run("return document.body.innerText.slice(0, 3000)", &[]).await;
        panic!(
            "{message}\naddress: {}\nconsole: {:?}\nscreenshot: {}\n{}",
            self.address().await,
            self.logged().await,
            kept.display(),
            text.as_str().unwrap_or_default()
        );
    }
}
