//! Checks of the page that a window shows.

use crate::Tab;
use hyper::Method;
use serde_json::{Value, json};

/// The smallest contrast of text and background, as WCAG 2.2 level AA requires it for text of normal size.
const LEAST_CONTRAST: f64 = 4.5;

/// The roles that people operate.
const CONTROLS: &[&str] = &[
    "button",
    "checkbox",
    "combobox",
    "link",
    "menuitem",
    "radio",
    "searchbox",
    "slider",
    "spinbutton",
    "switch",
    "tab",
    "textbox",
];

impl Tab {
    /// Checks everything that holds for every page: an empty console, controls with names, contrast, and no horizontal scrolling.
    pub async fn check(&self, page: &str) {
        self.check_console(page).await;
        self.check_names(page).await;
        self.check_contrast(page).await;
        self.check_width(page).await;
    }

    /// The lines of the console since the last call, violations of the content security policy and failed requests included.
    pub async fn logged(&self) -> Vec<String> {
        let answer = self.ask(Method::POST, "/se/log", json!({"type": "browser"})).await;
        let text = |entry: &Value| format!("{} {}", entry["level"], entry["message"]);
        answer.as_array().expect("a list").iter().map(text).collect()
    }

    /// Checks that the console is empty.
    pub async fn check_console(&self, page: &str) {
        let lines = self.logged().await;
        assert!(lines.is_empty(), "{page} writes to the console: {lines:#?}");
    }

    /// Checks in the accessibility tree that every control has a name.
    pub async fn check_names(&self, page: &str) {
        let tree = self.devtools("Accessibility.getFullAXTree", json!({})).await;
        let nodes = tree["nodes"].as_array().expect("a list");
        let is_control = |node: &&Value| {
            node["ignored"] != true && CONTROLS.iter().any(|role| node["role"]["value"] == *role)
        };
        let controls: Vec<&Value> = nodes.iter().filter(is_control).collect();
        assert!(!controls.is_empty(), "{page} has no control");
        let has_no_name =
            |node: &&&Value| node["name"]["value"].as_str().is_none_or(|name| name.trim().is_empty());
        let unnamed: Vec<String> = controls
            .iter()
            .filter(has_no_name)
            .map(|node| format!("{} {}", node["role"]["value"], node["backendDOMNodeId"]))
            .collect();
        assert!(unnamed.is_empty(), "{page} has controls without names: {unnamed:?}");
    }

    /// Checks the contrast of every visible text with its background, computed from the colours that the browser uses.
    pub async fn check_contrast(&self, page: &str) {
        let found = self.run(include_str!("script/contrast.js"), &[]).await;
        assert!(found["texts"].as_u64() > Some(3), "{page} shows no text: {found}");
        let is_weak = |text: &&Value| text["contrast"].as_f64() < Some(LEAST_CONTRAST);
        let weak: Vec<&Value> = found["worst"].as_array().expect("a list").iter().filter(is_weak).collect();
        assert!(weak.is_empty(), "{page} has texts with little contrast: {weak:#?}");
    }

    /// Checks that the page is not wider than its window.
    pub async fn check_width(&self, page: &str) {
        let wide = self.run(include_str!("script/width.js"), &[]).await;
        assert!(wide.is_null(), "{page} is wider than its window: {wide}");
    }
}
