//! Screenshots. Every one is kept in `target/browser`; those of the documents are written with `OUTLAST_BLESS=1`.

use crate::Tab;
use hyper::Method;
use serde_json::json;
use std::path::{Path, PathBuf};

/// The most bytes of an image in the documents.
const MOST_BYTES: usize = 150_000;

impl Tab {
    /// Keeps a screenshot of the window in `target/browser`, and returns its path.
    pub async fn shot(&self, name: &str) -> PathBuf {
        let path = root().join("target/browser").join(format!("{name}.png"));
        write(&path, &self.png().await);
        path
    }

    /// A screenshot for `docs/images`: with `OUTLAST_BLESS=1` it is written there.
    pub async fn document(&self, name: &str) {
        let png = self.png().await;
        assert!(
            png.len() < MOST_BYTES,
            "{name}.png has {} bytes: the documents have small images",
            png.len()
        );
        write(&root().join("target/browser").join(format!("{name}.png")), &png);
        let image = root().join("docs/images").join(format!("{name}.png"));
        match std::env::var_os("OUTLAST_BLESS").is_some() {
            true => write(&image, &png),
            false => {
                assert!(image.exists(), "OUTLAST_BLESS=1 cargo xtask test --only browser writes {name}.png")
            }
        }
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
    use super::base64;

    #[test]
    fn base64_is_decoded_with_and_without_padding() {
        for (text, bytes) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYmE=", "fooba")]
        {
            assert_eq!(base64(text), bytes.as_bytes(), "{text}");
        }
        assert_eq!(base64("+/+/"), [0xfb, 0xff, 0xbf]);
    }
}
