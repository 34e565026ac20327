//! Screenshots. Every one is kept in `target/browser`; those of the documents are written with `OUTLAST_BLESS=1`.

use crate::Tab;
use hyper::Method;
use serde_json::json;
use std::path::{Path, PathBuf};

/// The digests of the files that made the pages of the images.
const DIGESTS: &str = "docs/images/pages.txt";
/// The most bytes of an image in the documents.
const MOST_BYTES: u64 = 150_000;

impl Tab {
    /// Keeps a screenshot of the window in `target/browser`, and returns its path.
    pub async fn shot(&self, name: &str) -> PathBuf {
        let path = root().join("target/browser").join(format!("{name}.png"));
        write(&path, &self.png().await);
        path
    }

    /// A screenshot for `docs/images`, of a page that these files of the workspace make. With `OUTLAST_BLESS=1` it is written there, with
    /// a digest of the files; otherwise the test fails if a file has changed since.
    pub async fn document(&self, name: &str, sources: &[&str]) {
        let png = self.png().await;
        write(&root().join("target/browser").join(format!("{name}.png")), &png);
        let image = root().join("docs/images").join(format!("{name}.png"));
        let digest = digest(sources.iter().map(|path| {
            let text = std::fs::read(root().join(path));
            (*path, text.unwrap_or_else(|error| panic!("{path}: {error}")))
        }));
        let list = root().join(DIGESTS);
        let known = std::fs::read_to_string(&list).unwrap_or_default();
        if std::env::var_os("OUTLAST_BLESS").is_some() {
            write(&image, &png);
            write(&list, with_digest(&known, name, &digest).as_bytes());
        }
        // The bound is on the image of the documents: the size of a new screenshot depends on how far the page's instances are.
        let bytes = std::fs::metadata(&image).map_or(0, |file| file.len());
        assert!(
            bytes < MOST_BYTES,
            "docs/images/{name}.png has {bytes} bytes: the documents have small images. OUTLAST_BLESS=1 cargo xtask test --only browser \
             takes it again"
        );
        let known = std::fs::read_to_string(&list).unwrap_or_default();
        assert!(
            image.exists() && digest_of(&known, name) == Some(digest.as_str()),
            "docs/images/{name}.png shows an older page: one of {sources:?} has changed since it was taken. Look at \
             target/browser/{name}.png; OUTLAST_BLESS=1 cargo xtask test --only browser takes the images of the documents again"
        );
    }

    async fn png(&self) -> Vec<u8> {
        let answer = self.ask(Method::GET, "/screenshot", json!({})).await;
        base64(answer.as_str().expect("a text"))
    }
}

/// The root folder of the workspace.
fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).expect("the root of the workspace").to_path_buf()
}

/// FNV-1a over the paths and texts of files. It notices changes, and protects against nothing.
fn digest<'a>(files: impl Iterator<Item = (&'a str, Vec<u8>)>) -> String {
    let bytes = files.flat_map(|(path, text)| {
        let length = (text.len() as u64).to_le_bytes();
        [path.as_bytes(), &length, &text].concat()
    });
    let digest = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{digest:016x}")
}

/// The digest of an image in the list: one line `NAME DIGEST` for each.
fn digest_of<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    list.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
}

/// The list with another digest of an image. The lines are sorted by name.
fn with_digest(list: &str, name: &str, digest: &str) -> String {
    let others = list.lines().filter(|line| line.split(' ').next() != Some(name)).map(ToString::to_string);
    let mut lines: Vec<String> = others.chain([format!("{name} {digest}")]).collect();
    lines.sort();
    lines.join("\n") + "\n"
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder for screenshots");
    std::fs::write(path, bytes).expect("a file for a screenshot");
}

/// The bytes of a base64 text. The driver sends only valid ones.
fn base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'=').map(digit).collect();
    let group = |group: &[u8]| {
        let bits =
            group.iter().fold(0_u32, |bits, digit| bits << 6 | u32::from(*digit)) << (6 * (4 - group.len()));
        bits.to_be_bytes()[1..group.len()].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::{base64, digest, digest_of, with_digest};

    #[test]
    fn digest_differs_if_a_path_or_a_text_differs() {
        let of = |files: &[(&'static str, &str)]| {
            digest(files.iter().map(|(path, text)| (*path, text.as_bytes().to_vec())))
        };
        let first = of(&[("a", "1"), ("b", "2")]);
        assert_eq!(first, of(&[("a", "1"), ("b", "2")]));
        for other in [of(&[("a", "1"), ("b", "3")]), of(&[("a", "1"), ("c", "2")]), of(&[("a", "1")])] {
            assert_ne!(first, other);
        }
    }

    #[test]
    fn list_keeps_one_sorted_line_per_image() {
        let list = with_digest(&with_digest("", "state", "1"), "demo", "2");
        assert_eq!(list, "demo 2\nstate 1\n");
        assert_eq!((digest_of(&list, "state"), digest_of(&list, "stat")), (Some("1"), None));
        assert_eq!(with_digest(&list, "state", "3"), "demo 2\nstate 3\n");
    }

    #[test]
    fn base64_is_decoded_with_and_without_padding() {
        for (text, bytes) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYmE=", "fooba")]
        {
            assert_eq!(base64(text), bytes.as_bytes(), "{text}");
        }
        assert_eq!(base64("+/+/"), [0xfb, 0xff, 0xbf]);
    }
}
