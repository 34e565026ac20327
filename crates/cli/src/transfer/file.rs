//! The export format: one JSON object per line.
//!
//! The first line is the head with the version of the format, each further line an instance, and the last line the end with the number
//! of instances and a digest of all lines before it. A file is read completely before anything of it is used.

use crate::failure::Failure;
use outlast::providers::snapshot::InstanceSnapshot;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The version of the format that this command writes. It reads this one and all earlier ones.
const VERSION: u32 = 2;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    outlast_export: u32,
    written_at_ms: u64,
    written_by: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    instances: u64,
    sha256: String,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum WrittenLine<'a> {
    Instance(&'a InstanceSnapshot),
    End(End),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReadLine {
    Instance(Box<InstanceSnapshot>),
    End(End),
}

/// A file that is written beside its place, and moved there when it is complete.
pub(super) struct Writer {
    path: PathBuf,
    partial: PathBuf,
    out: Option<BufWriter<File>>,
    digest: Sha256,
    instances: u64,
}

impl Writer {
    pub(super) fn create(path: &Path, now_ms: u64) -> Result<Self, Failure> {
        if path.exists() {
            return Err(Failure::refused(format!(
                "the file '{}' exists: name a new one, or remove it",
                path.display()
            )));
        }
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(".partial");
        let partial = path.with_file_name(name);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        // The file has payloads.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&partial).map_err(|error| cannot("write", &partial, &error))?;
        let mut writer = Self {
            path: path.to_path_buf(),
            partial,
            out: Some(BufWriter::new(file)),
            digest: Sha256::new(),
            instances: 0,
        };
        let written_by = format!("outlast {}", env!("CARGO_PKG_VERSION"));
        writer.line(&Head { outlast_export: VERSION, written_at_ms: now_ms, written_by })?;
        Ok(writer)
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let mut text = serde_json::to_string(value)
            .map_err(|error| Failure::new(format!("cannot encode a line: {error}")))?;
        text.push('\n');
        self.digest.update(text.as_bytes());
        let Some(out) = &mut self.out else { return Ok(()) };
        out.write_all(text.as_bytes()).map_err(|error| cannot("write", &self.partial, &error))
    }

    pub(super) fn add(&mut self, snapshot: &InstanceSnapshot) -> Result<(), Failure> {
        self.instances += 1;
        self.line(&WrittenLine::Instance(snapshot))
    }

    /// Writes the end, syncs the file, and moves it to its place.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let sha256 = hex(&self.digest.clone().finalize());
        self.line(&WrittenLine::End(End { instances: self.instances, sha256 }))?;
        let failed = |error: &std::io::Error| cannot("write", &self.partial, error);
        if let Some(out) = self.out.take() {
            let file = out.into_inner().map_err(|error| failed(error.error()))?;
            file.sync_all().map_err(|error| failed(&error))?;
        }
        std::fs::rename(&self.partial, &self.path).map_err(|error| failed(&error))?;
        self.partial = PathBuf::new();
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.partial.as_os_str().is_empty() {
            // The command reports the reason for which the file is not complete. A partial file that stays is overwritten next time.
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}

fn cannot(act: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {act} the file '{}': {error}", path.display()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// A file that is read line by line. The end of the file shows whether its lines are those that were written, so nothing of a file is
/// used before it was read to its end.
pub(super) struct Reader {
    path: PathBuf,
    reader: BufReader<File>,
    digest: Sha256,
    line: u64,
    instances: u64,
}

impl Reader {
    /// Opens a file, and reads its head.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let file = File::open(path).map_err(|error| cannot("read", path, &error))?;
        let (path, digest) = (path.to_path_buf(), Sha256::new());
        let mut reader = Self { path, reader: BufReader::new(file), digest, line: 0, instances: 0 };
        reader.head()?;
        Ok(reader)
    }

    /// The next instance; `None` at the end of a file whose lines are those that were written.
    pub(super) fn next_instance(&mut self) -> Result<Option<InstanceSnapshot>, Failure> {
        let before = hex(&self.digest.clone().finalize());
        let Some(text) = self.next_line()? else {
            return Err(self.damaged("the file ends before its last line: it is not complete"));
        };
        match self.decode::<ReadLine>(&text)? {
            ReadLine::Instance(snapshot) => {
                self.instances += 1;
                if let Err(reason) = snapshot.check() {
                    let id = crate::output::plain(&snapshot.instance_id);
                    return Err(self.damaged(&format!("instance '{id}' contradicts itself: {reason}")));
                }
                Ok(Some(*snapshot))
            }
            ReadLine::End(end) => {
                if end.instances != self.instances {
                    let (named, found) = (end.instances, self.instances);
                    return Err(
                        self.damaged(&format!("the end names {named} instances, and the file has {found}"))
                    );
                }
                if end.sha256 != before {
                    return Err(self.damaged("the digest does not fit: the file was changed or damaged"));
                }
                match self.next_line()? {
                    None => Ok(None),
                    Some(_) => Err(self.damaged("there are lines after the end")),
                }
            }
        }
    }

    /// The next line without its line break; `None` at the end.
    fn next_line(&mut self) -> Result<Option<String>, Failure> {
        let mut bytes = Vec::new();
        self.reader.read_until(b'\n', &mut bytes).map_err(|error| cannot("read", &self.path, &error))?;
        if bytes.is_empty() {
            return Ok(None);
        }
        self.line += 1;
        self.digest.update(&bytes);
        if bytes.pop() != Some(b'\n') {
            return Err(self.damaged("the line is cut: the file is not complete"));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(self.damaged("the line is not UTF-8")),
        }
    }

    fn head(&mut self) -> Result<(), Failure> {
        let Some(text) = self.next_line()? else { return Err(self.damaged("the file is empty")) };
        let version = serde_json::from_str::<serde_json::Value>(&text)
            .ok()
            .and_then(|head| head.get("outlast_export").and_then(serde_json::Value::as_u64));
        match version {
            Some(version) if (1..=u64::from(VERSION)).contains(&version) => {
                self.decode::<Head>(&text).map(drop)
            }
            Some(newer) if newer > u64::from(VERSION) => Err(Failure::refused(format!(
                "the file '{}' has version {newer} of the export format, and this command reads version {VERSION}: use a newer \
                 command",
                self.path.display()
            ))),
            _ => Err(self.damaged("the file is no export of `outlast instance export`")),
        }
    }

    /// Decodes a line. The error of the decoder may quote a payload, so the message has only its place.
    fn decode<T: serde::de::DeserializeOwned>(&self, text: &str) -> Result<T, Failure> {
        serde_json::from_str(text).map_err(|error| {
            let what = match error.classify() {
                serde_json::error::Category::Data => "has a field that the format does not have there",
                _ => "is not JSON",
            };
            self.damaged(&format!("the line {what}, at column {}", error.column()))
        })
    }

    fn damaged(&self, what: &str) -> Failure {
        Failure::new(format!("cannot use the file '{}', line {}: {what}", self.path.display(), self.line))
    }
}
