//! Messages about URLs that hold secrets.

use super::secret;
use outlast::providers::sqlite::SqliteProvider;

pub(super) async fn run() {
    let folder = tempfile::tempdir().unwrap();
    let foreign = folder.path().join("foreign.db");
    std::fs::write(&foreign, secret("content").repeat(1_000)).unwrap();
    let secret = secret("password");
    for url in [
        format!("postgres://user:{secret}@host/database"),
        format!("postgres://host/database?password={secret}"),
        format!("{secret}@host"),
        format!("sqlite:a.db?mode={secret}"),
        format!("sqlite:a.db?key={secret}"),
        format!("sqlite:a.db?mode=rw&{secret}"),
        format!("sqlite:a%zz?key={secret}"),
        format!("sqlite:?password={secret}"),
        format!("sqlite:{}?cache=shared", folder.path().join("no/such/folder").display()),
        format!("sqlite:{}", foreign.display()),
    ] {
        let error = SqliteProvider::new(&url, None).await.err().unwrap();
        println!("{error} {error:?}");
        let error = outlast::providers::ProviderError::from(error);
        println!("{error} {error:?}");
    }
}
