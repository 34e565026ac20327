//! Temporary folders in memory.

use std::path::Path;
use tempfile::TempDir;

/// A new folder in `/dev/shm`, where a sync is free, or else in the usual place. Dropping the value removes the folder.
///
/// # Errors
///
/// If neither place accepts a folder.
pub fn in_memory(prefix: &str) -> std::io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    let shared_memory = Path::new("/dev/shm");
    match shared_memory.is_dir() {
        true => builder.tempdir_in(shared_memory).or_else(|_| builder.tempdir()),
        false => builder.tempdir(),
    }
}
