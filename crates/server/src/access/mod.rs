//! The decision whether a request is admitted: host, origin, token, scope, read-only mode and limits.

mod guard;
mod origin;
mod rate;
mod scope;
mod token;

pub(crate) use guard::{COOKIE, Caller, Counted, RequestId, Rule, cookie, enter, protect, protect_own};
pub(crate) use rate::Buckets;
pub use scope::{Scope, Scopes};
pub use token::{TokenError, Tokens};
