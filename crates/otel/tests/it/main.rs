//! Runtimes with traces, and a collector that decodes OTLP with the official types.

mod collector;
mod context;
mod crash;
mod drops;
mod program;
mod shape;
mod tree;
