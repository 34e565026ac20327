//! The project of docs/guide/testing.md: its files are modules here.
#![allow(unreachable_pub, reason = "the library of a project is public")]

mod library;
mod program;
mod tests;
