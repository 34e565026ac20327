WITH gone AS (
    DELETE FROM {schema}.sessions AS s
    WHERE s.locked_until < {schema}.now_ms()
        AND NOT EXISTS (SELECT 1 FROM {schema}.worker_queue AS w WHERE w.session_id = s.session_id)
    RETURNING 1
)
SELECT count(*) FROM gone
