//! Shows each feature of the rig: through the official SDK, or by HTTP where the SDK would repair or refuse the request.

#![allow(clippy::unwrap_used)]

mod auth;
mod batch;
mod containers;
mod control;
mod documents;
mod faults;
mod feeds;
mod kit;
mod query;
mod record;
mod strict;
mod time;
mod topology;
