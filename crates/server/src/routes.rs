//! The list of all routes with their rules and descriptions. The router and the OpenAPI document are made from it.

use crate::access::{Rule, Scope, protect};
use crate::app::Shared;
use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};
use axum::{Json, Router};
use std::future::ready;

/// A route of the router.
pub(crate) struct Route {
    #[cfg_attr(not(test), expect(dead_code, reason = "the tests of all routes read it"))]
    pub(crate) method: Method,
    pub(crate) path: String,
    handler: MethodRouter<Shared>,
}

/// A route for the OpenAPI document.
pub(crate) struct Described {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) scope: Option<Scope>,
    pub(crate) about: About,
}

/// The description of a route.
#[derive(Default)]
pub(crate) struct About {
    pub(crate) summary: &'static str,
    /// Parameters after `?`.
    pub(crate) params: &'static [Param],
    /// The schema of the body.
    pub(crate) body: Option<&'static str>,
    /// The schema of the answer; `None` if the answer is not JSON of a fixed shape.
    pub(crate) answer: Option<&'static str>,
    /// The statuses of answers that are no problems; 200 if the list is empty.
    pub(crate) statuses: &'static [u16],
    /// Whether the header Idempotency-Key has a meaning.
    pub(crate) is_keyed: bool,
    /// Whether the header traceparent has a meaning.
    pub(crate) is_traced: bool,
    /// The media type of an answer without a schema; JSON if it is empty.
    pub(crate) media: &'static str,
}

/// A parameter after `?`: its name, its values and its meaning.
pub(crate) struct Param(pub(crate) &'static str, pub(crate) Values, pub(crate) &'static str);

/// The values of a parameter.
pub(crate) enum Values {
    Text,
    /// `true` or `false`.
    Flag,
    /// A whole number from the first to the second.
    Whole(u64, u64),
}

/// The routes so far.
pub(crate) struct Routes {
    app: Shared,
    all: Vec<Route>,
    described: Vec<Described>,
}

impl Routes {
    pub(crate) fn new(app: &Shared) -> Self {
        Self { app: app.clone(), all: Vec::new(), described: Vec::new() }
    }

    /// Adds a route of the API.
    pub(crate) fn api<H, T>(
        mut self,
        method: Method,
        path: &'static str,
        scope: Option<Scope>,
        about: About,
        handler: H,
    ) -> Self
    where
        H: Handler<T, Shared>,
        T: 'static,
    {
        let rule = Rule { scope, is_write: method != Method::GET, is_page: false };
        self.described.push(Described { method: method.clone(), path, scope, about });
        self.add(&method, &format!("/api/v1{path}"), rule, handler)
    }

    /// Adds a page, which is read with GET.
    pub(crate) fn page<H, T>(self, path: &'static str, scope: Option<Scope>, handler: H) -> Self
    where
        H: Handler<T, Shared>,
        T: 'static,
    {
        self.add(&Method::GET, path, Rule { scope, is_write: false, is_page: true }, handler)
    }

    /// Adds a text for programs, outside of the API.
    pub(crate) fn text<H, T>(self, path: &'static str, scope: Option<Scope>, handler: H) -> Self
    where
        H: Handler<T, Shared>,
        T: 'static,
    {
        self.add(&Method::GET, path, Rule { scope, is_write: false, is_page: false }, handler)
    }

    /// Adds a route that the dashboard posts to without a token.
    pub(crate) fn post<H, T>(self, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, Shared>,
        T: 'static,
    {
        self.add(&Method::POST, path, Rule { scope: None, is_write: false, is_page: false }, handler)
    }

    fn add<H, T>(mut self, method: &Method, path: &str, rule: Rule, handler: H) -> Self
    where
        H: Handler<T, Shared>,
        T: 'static,
    {
        let filter = match *method {
            Method::POST => MethodFilter::POST,
            Method::DELETE => MethodFilter::DELETE,
            _ => MethodFilter::GET,
        };
        let handler = on(filter, handler).route_layer(from_fn_with_state((self.app.clone(), rule), protect));
        self.all.push(Route { method: method.clone(), path: path.to_string(), handler });
        self
    }

    /// Adds the OpenAPI document of the API.
    pub(crate) fn document(self) -> Self {
        let document = crate::openapi::document(&self.app.options, &self.described);
        self.page("/api/v1/openapi.json", None, move || ready(Json(document.clone())))
    }

    /// All routes. No other route reaches a handler of this crate.
    pub(crate) fn all(self) -> Vec<Route> {
        self.all
    }
}

/// The router of these routes.
pub(crate) fn router(routes: Vec<Route>) -> Router<Shared> {
    routes.into_iter().fold(Router::new(), |router, route| router.route(&route.path, route.handler))
}
