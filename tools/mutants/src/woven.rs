//! Runs the tests for mutants of Rust code with one build. All mutants are inserted into a copy of the sources, mutants that do not
//! compile are removed, and the tests run once for each remaining mutant. One build for each mutant would take ten times as long.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::choice::{self, Spot};
use super::fences;
use super::judge::{self, Built};
use super::listed::Mutant;
use super::outcomes::{Outcomes, UNVIABLE};
use super::target::Target;
use outlast_toolkit::process;

/// The compiler reports errors of names, of types and of borrows in separate builds, so about three builds are needed.
const MOST_BUILDS: usize = 12;

/// Runs the tests for the chosen mutants. All mutants are inserted, so that another choice needs no new build.
pub(super) fn run(
    target: &Target,
    home: &Path,
    mutants: &[Mutant],
    chosen: &[&Mutant],
    outcomes: &mut Outcomes,
) -> Result<(), String> {
    let copy = Copy { root: home.join("sources"), door: format!("{}/src/lib.rs", target.folder()) };
    let mut left: BTreeMap<usize, &Mutant> = (1..).zip(mutants).collect();
    left.retain(|_, mutant| mutant.spot.is_some() && outcomes.outcome(mutant) != Some(UNVIABLE));
    copy.follow(mutants)?;
    let mut files: BTreeMap<String, Lines> = BTreeMap::new();
    for _ in 0..MOST_BUILDS {
        for file in copy.files(mutants) {
            files.insert(file.clone(), copy.weave(&file, &left)?);
        }
        let built = judge::build(target, &copy.root)?;
        if built.is_ok {
            outcomes.save()?;
            let wanted: BTreeSet<&str> = chosen.iter().map(|mutant| mutant.key.as_str()).collect();
            let wanted = left.iter().filter(|(_, mutant)| wanted.contains(mutant.key.as_str()));
            let mut numbered: Vec<(&Mutant, String)> =
                wanted.map(|(number, mutant)| (*mutant, number.to_string())).collect();
            // The checks of tokens and leases come first, because the run may be stopped.
            numbered.sort_by_key(|(mutant, _)| !fences::guards(mutant));
            return judge::judge(target, &built.tests(home)?, choice::VARIABLE, &numbered, outcomes);
        }
        let broken = unviable(&built, &files);
        println!("{}: {} of {} mutants do not compile", target.name, broken.len(), left.len());
        if broken.is_empty() {
            break;
        }
        for number in broken {
            if let Some(mutant) = left.remove(&number) {
                outcomes.record(mutant.key.clone(), UNVIABLE);
            }
        }
    }
    Err(format!("{}: what is left does not build, see {}", target.name, copy.root.display()))
}

/// Lines of a file, each with the mutant that they belong to.
type Lines = Vec<(Range<usize>, usize)>;

/// The sources of the workspace, to be changed.
struct Copy {
    root: PathBuf,
    /// The root of the crate, where mutants are chosen.
    door: String,
}

impl Copy {
    /// The files that are not as in the workspace.
    fn files(&self, mutants: &[Mutant]) -> BTreeSet<String> {
        mutants.iter().map(|mutant| mutant.file.clone()).chain([self.door.clone()]).collect()
    }

    /// Copies the other files from the workspace. Files that are the same keep their time, so that cargo builds only the
    /// changed files.
    fn follow(&self, mutants: &[Mutant]) -> Result<(), String> {
        let woven = self.files(mutants);
        for file in process::files()?.iter().filter(|file| !woven.contains(*file)) {
            // A file that was deleted is listed until its deletion is committed.
            if let Ok(bytes) = fs::read(process::root().join(file)) {
                self.write(file, &bytes)?;
            }
        }
        Ok(())
    }

    /// Writes a file with the mutants of this file inserted. Returns the lines of each mutant.
    fn weave(&self, file: &str, mutants: &BTreeMap<usize, &Mutant>) -> Result<Lines, String> {
        let source =
            fs::read_to_string(process::root().join(file)).map_err(|error| format!("{file}: {error}"))?;
        let here = mutants.iter().filter(|(_, mutant)| mutant.file == file);
        let spots: Vec<(usize, &Spot)> =
            here.filter_map(|(number, mutant)| Some((*number, mutant.spot.as_ref()?))).collect();
        let mut woven = choice::weave(&source, &spots);
        if file == self.door {
            woven.text.push_str(&choice::chooser());
        }
        self.write(file, woven.text.as_bytes())?;
        Ok(woven.lines)
    }

    /// Writes a file, unless it has this content.
    fn write(&self, file: &str, bytes: &[u8]) -> Result<(), String> {
        let path = self.root.join(file);
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        if fs::read(&path).is_ok_and(|old| old == bytes) {
            return Ok(());
        }
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
        fs::write(&path, bytes).map_err(failed)
    }
}

/// The mutants that errors of the compiler point at.
fn unviable(built: &Built, files: &BTreeMap<String, Lines>) -> BTreeSet<usize> {
    let errors = built.messages.iter().map(|message| &message["message"]).filter(|m| m["level"] == "error");
    errors.filter_map(|error| pointed_at(error, files)).collect()
}

/// The place of an error counts first, then others that it mentions.
fn pointed_at(error: &Value, files: &BTreeMap<String, Lines>) -> Option<usize> {
    let spans = |message: &Value| message["spans"].as_array().cloned().unwrap_or_default();
    let mut mentioned = spans(error);
    mentioned.sort_by_key(|span| span["is_primary"] != true);
    mentioned.extend(error["children"].as_array().into_iter().flatten().flat_map(spans));
    mentioned.iter().find_map(|span| mutant_at(span, files))
}

/// The mutant at the place of an error.
fn mutant_at(span: &Value, files: &BTreeMap<String, Lines>) -> Option<usize> {
    let line = usize::try_from(span["line_start"].as_u64()?).ok()?;
    let of_file = files.get(span["file_name"].as_str()?);
    let found = of_file.and_then(|lines| lines.iter().find(|(lines, _)| lines.contains(&line)));
    // In code from a macro, the span is in the macro, and its expansion is the place of the call.
    found.map(|(_, number)| *number).or_else(|| mutant_at(span["expansion"].get("span")?, files))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_error_belongs_to_the_mutant_that_it_points_at() {
        let files = BTreeMap::from([("src/a.rs".to_string(), vec![(3..6, 1), (6..9, 2)])]);
        let at = |file: &str, line: u64, is_primary: bool| json!({"file_name": file, "line_start": line, "is_primary": is_primary});
        let error = |spans: Value| pointed_at(&json!({"spans": spans}), &files);
        assert_eq!(error(json!([at("src/a.rs", 3, false), at("src/a.rs", 6, true)])), Some(2));
        assert_eq!(error(json!([at("src/a.rs", 1, true), at("src/a.rs", 5, false)])), Some(1));
        assert_eq!(error(json!([at("src/b.rs", 3, true)])), None);
        let mut inside = at("std.rs", 3, true);
        inside["expansion"] = json!({"span": at("src/a.rs", 8, false)});
        assert_eq!(error(json!([inside])), Some(2));
    }
}
