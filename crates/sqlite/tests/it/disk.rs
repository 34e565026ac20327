//! Full and read-only disks.

use crate::support::*;
use outlast_provider::Provider;
use outlast_sqlite::{SqliteError, SqliteProvider};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::task::JoinSet;

/// These tests mount a file system. The suite `small-disks` runs them, as root only.
mod needs_root {
    use super::*;

    /// A small file system in memory, which is unmounted with this value.
    struct SmallDisk(TempDir);

    impl SmallDisk {
        fn new(size: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            mount(&["-t", "tmpfs", "-o", &format!("size={size}"), "outlast-test"], folder.path());
            Self(folder)
        }

        fn path(&self) -> PathBuf {
            self.0.path().join("store.db")
        }

        fn make_read_only(&self) {
            mount(&["-o", "remount,ro"], self.0.path());
        }
    }

    impl Drop for SmallDisk {
        fn drop(&mut self) {
            // A lazy unmount also succeeds if a failed test still has the store open.
            let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
        }
    }

    fn mount(args: &[&str], on: &Path) {
        let done = Command::new("mount").args(args).arg(on).output().expect("`mount` is installed");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(
            done.status.success(),
            "this test mounts a file system of its own, which only root may do: {said}"
        );
    }

    /// Starts instances with a large input until the disk is full; returns the acknowledged instances.
    async fn fill(provider: &Arc<SqliteProvider>, prefix: &'static str) -> BTreeSet<String> {
        let mut writers = JoinSet::new();
        for writer in 0..4 {
            let provider = Arc::clone(provider);
            writers.spawn(async move {
                let mut acknowledged = BTreeSet::new();
                for n in 0.. {
                    assert!(n < 1_000, "the disk cannot hold that much");
                    let id = format!("{prefix}-{writer}-{n}");
                    match provider.enqueue_for_orchestrator(start_with(&id, &"x".repeat(10_000)), None).await
                    {
                        Ok(()) => acknowledged.insert(id),
                        Err(error) => {
                            assert!(error.is_retryable(), "{error}");
                            assert!(error.message.contains("no space left on the device"), "{error}");
                            break;
                        }
                    };
                }
                acknowledged
            });
        }
        writers.join_all().await.into_iter().flatten().collect()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_full_disk_loses_no_acknowledged_start_and_freed_space_is_used() {
        let disk = SmallDisk::new("3m");
        let path = disk.path();
        let ballast = path.with_extension("ballast");
        std::fs::write(&ballast, vec![7; 1 << 20]).unwrap();
        let provider = Arc::new(open(&path).await);
        hello(&*provider, "before").await;
        let mut acknowledged = fill(&provider, "first").await;
        assert!(acknowledged.len() > 20, "{} starts were acknowledged", acknowledged.len());
        assert_eq!(waiting_starts(&path), acknowledged, "the store holds exactly the acknowledged starts");

        // The store still reads, and each refused write names the full disk.
        assert_eq!(provider.read("before").await.unwrap().len(), 4);
        for _ in 0..3 {
            let error = provider
                .enqueue_for_orchestrator(start_with("no", &"x".repeat(200_000)), None)
                .await
                .unwrap_err();
            assert!(error.is_retryable() && error.message.contains("no space left"), "{error}");
        }
        assert_eq!(provider.integrity_check().await.unwrap(), [""; 0]);
        assert_eq!(provider.stats().reopened, 0, "a full disk does not close the connection");

        std::fs::remove_file(&ballast).unwrap();
        acknowledged.extend(fill(&provider, "second").await);
        assert!(acknowledged.iter().any(|id| id.starts_with("second")), "freed space takes new starts");
        assert_eq!(waiting_starts(&path), acknowledged);
        drop(provider);
        assert_eq!(waiting_starts(&path), acknowledged, "a reopened store holds the acknowledged starts");
    }

    #[tokio::test]
    async fn opening_on_a_full_disk_is_a_retryable_error() {
        let disk = SmallDisk::new("64k");
        let path = disk.path();
        std::fs::write(path.with_extension("ballast"), vec![7; 40 << 10]).unwrap();
        let error = SqliteProvider::new(&url(&path), None).await.err().expect("the schema does not fit");
        assert!(matches!(error, SqliteError::DiskFull) && error.is_retryable(), "{error:?}");
        std::fs::remove_file(path.with_extension("ballast")).unwrap();
        let disk = SmallDisk::new("3m");
        hello(&open(&disk.path()).await, "i").await;
    }

    #[tokio::test]
    async fn opening_on_a_read_only_disk_is_refused_with_the_path() {
        let disk = SmallDisk::new("3m");
        let path = disk.path();
        hello(&open(&path).await, "i").await;
        disk.make_read_only();
        let before = files(path.parent().unwrap());
        let elsewhere = path.with_file_name("new.db");
        // A read-only connection needs the log too, so other tools cannot open a store on a read-only disk either.
        for (path, options) in [(&path, ""), (&path, "?mode=rw"), (&path, "?mode=ro"), (&elsewhere, "")] {
            let error = SqliteProvider::new(&format!("{}{options}", url(path)), None)
                .await
                .err()
                .expect("the disk is read-only");
            let typed = matches!(error, SqliteError::ReadOnly { .. } | SqliteError::CannotOpen { .. });
            assert!(typed && !error.is_retryable(), "{error:?}");
            assert!(error.to_string().contains(&*path.to_string_lossy()), "{error}");
        }
        assert!(files(path.parent().unwrap()) == before);
    }

    #[tokio::test]
    async fn a_backup_that_fails_leaves_no_file() {
        let disk = SmallDisk::new("64k");
        let (_folder, path) = fresh();
        let provider = open(&path).await;
        finish(&provider, "i", 200_000).await;
        let target = disk.path();
        let error = provider.backup_to(&target).await.unwrap_err();
        assert!(matches!(error, SqliteError::DiskFull), "{error:?}");
        assert!(!target.exists() && files(target.parent().unwrap()).is_empty());
    }
}
