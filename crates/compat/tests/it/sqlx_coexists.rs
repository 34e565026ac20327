//! sqlx and our SQLite store in one process. Both bring the same native library, which Cargo links once only: with
//! versions that disagree there would be no lock file, and the programs that use both would not build.

use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;

#[tokio::test]
async fn sqlx_opens_a_file_beside_ours() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        SqliteConnectOptions::new().filename(folder.path().join("theirs.db")).create_if_missing(true);
    let mut theirs = options.connect().await.unwrap();
    sqlx::query("CREATE TABLE plain (id INTEGER PRIMARY KEY, name TEXT)").execute(&mut theirs).await.unwrap();
    let version: String = sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&mut theirs).await.unwrap();
    assert!(version.starts_with("3."), "{version}");
}
