//! Reading and writing files with errors that name the file.

use std::fs;
use std::path::Path;

/// The text of a file.
pub fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes a file, and creates its folder if the folder does not exist.
pub fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    folder.and_then(|()| fs::write(path, text)).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_creates_the_folder_and_errors_name_the_file() {
        let folder = std::env::temp_dir().join(format!("outlast-files-{}", std::process::id()));
        let file = folder.join("a/b.txt");
        assert!(read(&file).unwrap_err().contains("b.txt"));
        write(&file, "text").unwrap();
        assert_eq!(read(&file).unwrap(), "text");
        assert!(write(&file.join("c"), "").unwrap_err().contains("b.txt"));
        fs::remove_dir_all(folder).unwrap();
    }
}
