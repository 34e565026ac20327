//! Eager starts on PostgreSQL.

use crate::support::postgres::{fresh_schema, open, raw};
use crate::support::{LONGEST_WAIT, activities, calls};
use outlast::runtime::Runtime;
use outlast::{ActivityContext, Client};

/// Notes the transaction of every row that is written.
const NOTE_TRANSACTIONS: &str = "
    CREATE TABLE {schema}.noted (id bigint);
    CREATE FUNCTION {schema}.note() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO {schema}.noted VALUES (pg_current_xact_id()::text::bigint);
        RETURN NULL;
    END $$;
    DO $$
    DECLARE
        v_table text;
    BEGIN
        FOREACH v_table IN ARRAY ARRAY['instances', 'executions', 'history', 'orchestrator_queue', 'worker_queue', 'instance_locks']
        LOOP
            EXECUTE format('CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON {schema}.%I
                            FOR EACH ROW EXECUTE FUNCTION {schema}.note()', v_table);
        END LOOP;
    END $$";

/// The start and the first turn are one commit, and the outcome of the activity and the last turn are another. The least of several
/// runs counts: a fetch that is not parked yet when its item becomes visible takes a commit of its own.
#[tokio::test]
async fn an_idle_hello_costs_two_commits() {
    let (schema, client) = (fresh_schema(), raw().await);
    let store = open(&schema).await;
    client.batch_execute(&NOTE_TRANSACTIONS.replace("{schema}", &schema)).await.unwrap();
    let work = activities()
        .register("Work", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) });
    let runtime = Runtime::start_with_store(store.clone(), work.build(), calls("Work").build()).await;
    let (starter, mut least) = (Client::new(store), [i64::MAX; 2]);
    for n in 0..40 {
        let (instance, has_receipt) = (format!("hello-{n}"), n % 2);
        match has_receipt {
            0 => starter.start_orchestration(&instance, "Calls", "").await.unwrap(),
            _ => {
                assert!(starter.start_request("Calls").instance(&instance).send().await.unwrap().is_started())
            }
        }
        starter.wait_for_orchestration(&instance, LONGEST_WAIT).await.unwrap();
        let count = format!(
            "WITH gone AS (DELETE FROM {schema}.noted RETURNING id) SELECT count(DISTINCT id) FROM gone"
        );
        least[has_receipt] = least[has_receipt].min(client.query_one(&count, &[]).await.unwrap().get(0));
    }
    assert_eq!(least, [2, 2]);
    runtime.shutdown(None).await;
}
