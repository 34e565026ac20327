//! Lists read a bounded number of instances, and their pages reach every instance.

use super::*;
use crate::plans::db;

/// A store with this many instances. Every `nth` has the status; the others completed.
fn filled(instances: u64, nth: u64, status: &str) -> Db {
    let db = db();
    let rows =
        format!("WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {instances})");
    db.conn
        .execute_batch(&format!(
            "INSERT INTO instances (instance_id, orchestration_name, current_execution_id, created_at, updated_at)
             {rows} SELECT 'i-' || n, 'Orch', 1, n, n FROM n;
             INSERT INTO executions (instance_id, execution_id, status, started_at, updated_at)
             {rows} SELECT 'i-' || n, 1, iif(n % {nth} = 0, '{status}', 'Completed'), n, n FROM n"
        ))
        .unwrap();
    db
}

/// The ids of all pages, and the lengths of the pages.
fn pages(db: &Db, mut query: InstanceQuery) -> (Vec<String>, Vec<usize>) {
    let (mut ids, mut sizes) = (Vec::new(), Vec::new());
    loop {
        let found = page(db, &query).unwrap();
        sizes.push(found.instances.len());
        ids.extend(found.instances.into_iter().map(|info| info.instance_id));
        query.after = found.next;
        if query.after.is_none() {
            return (ids, sizes);
        }
        assert!(sizes.len() < 100, "too many pages: {sizes:?}");
    }
}

fn of_status(status: &str, limit: u32) -> InstanceQuery {
    InstanceQuery { status: Some(status.to_string()), limit: Some(limit), ..InstanceQuery::default() }
}

fn newest_first(numbers: impl Iterator<Item = u64>) -> Vec<String> {
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable_by_key(|n| std::cmp::Reverse(*n));
    numbers.into_iter().map(|n| format!("i-{n}")).collect()
}

#[test]
fn page_ends_after_its_budget_and_pages_reach_every_instance() {
    let db = filled(45_000, 40_000, "ContinuedAsNew");
    let (ids, sizes) = pages(&db, of_status("ContinuedAsNew", 10));
    // Each page reads 20,000 instances. The one that matches is the 5,001st from the newest.
    assert_eq!((ids, sizes), (newest_first([40_000].into_iter()), vec![1, 0, 0]));
    let (ids, sizes) = pages(&db, of_status("Unknown", 10));
    assert_eq!((ids.len(), sizes), (0, vec![0, 0, 0]));

    let (ids, sizes) = pages(&db, of_status("Completed", 1_000));
    assert_eq!(ids, newest_first((1..=45_000).filter(|n| *n != 40_000)));
    assert!(
        sizes[..44].iter().all(|size| *size == 1_000),
        "every page is full if many instances match: {sizes:?}"
    );
    let (ids, sizes) = pages(&db, InstanceQuery { limit: Some(1_000), ..InstanceQuery::default() });
    assert_eq!((ids.len(), sizes.len()), (45_000, 45));
}

#[test]
fn few_running_or_failed_instances_are_found_at_any_position() {
    for status in ["Running", "Failed"] {
        let db = filled(45_000, 15_000, status);
        let all = newest_first([15_000, 30_000, 45_000].into_iter());
        assert_eq!(pages(&db, of_status(status, 2)), (all.clone(), vec![2, 1]), "{status}");
        assert_eq!(ids(&db, Some(status)).unwrap(), all);
        let named = InstanceQuery { orchestration_name: Some("Other".to_string()), ..of_status(status, 2) };
        assert_eq!(pages(&db, named).0, [""; 0]);
        // The status of an older execution, which a damaged store may have, is not that of the instance.
        let old = "INSERT INTO executions (instance_id, execution_id, status, started_at, updated_at)
                   VALUES ('i-7', 0, ?1, 1, 1)";
        db.conn.execute(old, [status]).unwrap();
        assert_eq!(ids(&db, Some(status)).unwrap(), all);
        assert_eq!(pages(&db, of_status(status, 2)).0, all);
        let running = if status == "Running" { 3 } else { 0 };
        assert_eq!(gauges(&db, 1).unwrap().running_instances, running);
        assert_eq!(metrics(&db).unwrap().running_instances, running);
    }
}

#[test]
fn many_running_instances_are_listed_window_by_window() {
    let db = filled(25_000, 1, "Running");
    assert!(!are_few(&db, "Running").unwrap() && are_few(&db, "Failed").unwrap());
    let all = newest_first(1..=25_000);
    assert_eq!(ids(&db, Some("Running")).unwrap(), all);
    let (listed, sizes) = pages(&db, of_status("Running", 1_000));
    assert_eq!((listed, sizes), (all, vec![1_000; 25]));
}
