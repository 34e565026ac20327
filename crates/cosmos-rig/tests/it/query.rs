//! Queries in one partition: the emulator's, unchanged by the rig.

use serde_json::{Value, json};

use crate::kit::Fixture;

/// Ten documents `q0` to `q9`, some without `lockedUntil` or `tag`.
async fn fixture() -> Fixture {
    let fixture = Fixture::new().await;
    for n in 0..10 {
        let kind = if n % 2 == 1 { "w" } else { "o" };
        let mut fields =
            json!({ "type": kind, "n": 9 - n, "s": format!("s{n:02}"), "at": n * 100, "seq": 1000 - n });
        match n {
            0..3 => fields["lockedUntil"] = Value::Null,
            3..6 => fields["lockedUntil"] = json!(n * 1000),
            _ => {}
        }
        if n % 3 == 0 {
            fields["tag"] = json!(format!("g{n}"));
        }
        fixture.create("Q", &format!("q{n}"), fields).await;
    }
    for partition in 0..3 {
        fixture.create(&format!("X{partition}"), "x", json!({ "type": "cross" })).await;
    }
    fixture
}

/// The end of a query, its parameters, and the numbers of the documents that it finds.
type Case<'a> = (&'a str, &'a [(&'a str, Value)], &'a [u8]);

#[tokio::test]
async fn filters_orders_and_limits() {
    let fixture = fixture().await;
    let ids = async |sql: &str, parameters: &[(&str, Value)]| {
        fixture.rest().query("Q", sql, parameters).await.ids()
    };
    let cases: &[Case<'_>] = &[
        (
            "WHERE c.instanceId = @i AND c.type = @t ORDER BY c.id",
            &[("@i", json!("Q")), ("@t", json!("w"))],
            &[1, 3, 5, 7, 9],
        ),
        ("ORDER BY c.n", &[], &[9, 8, 7, 6, 5, 4, 3, 2, 1, 0]),
        ("ORDER BY c.n DESC", &[], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("WHERE c.n IN (1, 2, 3) AND c.type IN (@a, 'o') ORDER BY c.id", &[("@a", json!("w"))], &[6, 7, 8]),
        ("WHERE IS_DEFINED(c.lockedUntil) ORDER BY c.id", &[], &[0, 1, 2, 3, 4, 5]),
        ("WHERE NOT IS_DEFINED(c.lockedUntil) ORDER BY c.id", &[], &[6, 7, 8, 9]),
        ("WHERE IS_NULL(c.lockedUntil) ORDER BY c.id", &[], &[0, 1, 2]),
        ("WHERE c.lockedUntil = null ORDER BY c.id", &[], &[0, 1, 2]),
        ("WHERE c.lockedUntil <= 4000 ORDER BY c.id", &[], &[3, 4]),
        ("WHERE c.tag != 'g0' ORDER BY c.id", &[], &[3, 6, 9]),
        ("WHERE c.n = '1'", &[], &[]),
        (
            "WHERE c.at <= @now AND c.type = 'w' AND (NOT IS_DEFINED(c.lockedUntil) OR c.lockedUntil = null OR \
          c.lockedUntil <= @now) ORDER BY c.seq",
            &[("@now", json!(750))],
            &[7, 1],
        ),
        ("ORDER BY c.n OFFSET 2 LIMIT 3", &[], &[7, 6, 5]),
        ("WHERE STARTSWITH(c.s, 's0') AND CONTAINS(c.s, '3')", &[], &[3]),
        ("WHERE c.n BETWEEN 2 AND 3 ORDER BY c.id", &[], &[6, 7]),
        ("WHERE c.s LIKE 's%5'", &[], &[5]),
    ];
    for (rest, parameters, expected) in cases {
        let sql = format!("SELECT * FROM c {rest}");
        let expected: Vec<String> = expected.iter().map(|n| format!("q{n}")).collect();
        assert_eq!(ids(&sql, parameters).await, expected, "{sql}");
    }
    assert_eq!(ids("SELECT TOP 3 * FROM c ORDER BY c.n", &[]).await, ["q9", "q8", "q7"]);
}

#[tokio::test]
async fn projections_and_aggregates_in_one_partition() {
    let fixture = fixture().await;
    let cases = [
        ("SELECT c.id, c.n FROM c WHERE c.n = 3", json!([{ "id": "q6", "n": 3 }])),
        ("SELECT VALUE c.id FROM c WHERE c.n = 3", json!(["q6"])),
        ("SELECT VALUE COUNT(1) FROM c", json!([10])),
        ("SELECT VALUE MAX(c.n) FROM c", json!([9])),
    ];
    for (sql, expected) in cases {
        assert_eq!(fixture.rest().query("Q", sql, &[]).await.body["Documents"], expected, "{sql}");
    }
    let grouped = fixture.rest().query("Q", "SELECT c.type, COUNT(1) AS k FROM c GROUP BY c.type", &[]).await;
    assert_eq!(grouped.body["Documents"].as_array().map(Vec::len), Some(2));
    assert_eq!(fixture.rest().query("X1", "SELECT * FROM c", &[]).await.ids(), ["x"], "no other partition");
    assert_eq!(fixture.rest().query("Q", "SELEC * FRM c", &[]).await.status, 400);
}
