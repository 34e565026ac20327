//! `cargo xtask book`: the pages of this repository as a book with a search, made by mdBook.
//!
//! The pages stay where they are. A copy of them, whose links lead to pages of the book or to the repository, is built, and the
//! links of the result are checked.

mod links;
mod pages;
#[cfg(test)]
mod programs;
mod summary;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use outlast_packages::{self as packages, publish};
use outlast_toolkit::{files, installed, process};

use pages::Pages;

/// The settings of mdBook.
const SETTINGS: &str = "docs/book.toml";
/// The folder of the API documentation in the book.
const API: &str = "api";

#[derive(clap::Args)]
pub(super) struct Args {
    /// Builds the API documentation of the published packages too, and puts it beside the pages
    #[arg(long)]
    api: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, String> {
    let mdbook = installed::cargo_tool("mdbook", "^0.5")?;
    let folder = process::target().join("book");
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(failed)?;
    }
    let pages = Pages::load()?;
    for (path, bytes) in pages.copied(args.api)? {
        let path = folder.join("src").join(path);
        fs::create_dir_all(path.parent().unwrap_or(&folder)).map_err(failed)?;
        fs::write(&path, bytes).map_err(failed)?;
    }
    files::write(&folder.join("book.toml"), &files::read(&process::root().join(SETTINGS))?)?;
    if !process::stream(build(&mdbook, &folder), |_| {})?.success() {
        return Err("mdBook failed, see above".to_string());
    }
    let html = folder.join("html");
    if args.api {
        add_api(&html.join(API))?;
    }
    let dead = links::dead(&html, API)?;
    dead.iter().for_each(|link| println!("{link}"));
    println!("{}: {} pages, {} dead link(s)", html.join("index.html").display(), pages.count(), dead.len());
    Ok(if dead.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn build(mdbook: &Path, folder: &Path) -> Command {
    let mut command = Command::new(mdbook);
    command.arg("build").arg(folder).current_dir(process::root());
    command
}

/// Builds the documentation of the published libraries, and copies it.
fn add_api(to: &Path) -> Result<(), String> {
    let all = packages::load()?;
    let mut doc = process::cargo(&["doc", "--no-deps", "--all-features", "--lib", "--target-dir"]);
    let folder = process::target().join("book-api");
    doc.arg(&folder);
    let libraries = publish::order(&all)?
        .into_iter()
        .filter(|package| package.targets.iter().any(|target| target.is_lib() || target.is_proc_macro()));
    doc.args(libraries.flat_map(|package| ["-p", package.name.as_str()]));
    if !process::stream(doc, |_| {})?.success() {
        return Err("the API documentation could not be built, see above".to_string());
    }
    process::output(Command::new("cp").arg("-r").arg(folder.join("doc")).arg(to)).map(drop)
}
