//! The statement that recognises files of other programs.

use crate::plans::db;
use crate::sql;

#[test]
fn first_schema_name_prefers_known_tables_and_ignores_tables_of_sqlite() {
    let first = |made: &str| {
        let mut db = db();
        db.conn = rusqlite::Connection::open_in_memory().unwrap();
        db.conn.execute_batch(made).unwrap();
        db.one(sql::FIRST_SCHEMA_NAME, [], |row| row.get::<_, String>(0)).unwrap()
    };
    assert_eq!(first(""), None);
    // The table sqlite_sequence stays after all other tables were dropped.
    assert_eq!(first("CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT); DROP TABLE t"), None);
    assert_eq!(first("CREATE TABLE b (x); CREATE TABLE a (x)").as_deref(), Some("b"));
    assert_eq!(first("CREATE TABLE b (x); CREATE TABLE instances (x)").as_deref(), Some("instances"));
    assert_eq!(
        first("CREATE TABLE b (x); CREATE TABLE _sqlx_migrations (x)").as_deref(),
        Some("_sqlx_migrations")
    );
    assert_eq!(first("CREATE TABLE sqlite (x)").as_deref(), Some("sqlite"));
}
