-- Leased turns and activities are deleted too: commits of their holders are refused.
WITH removal AS (SELECT $1::text[] AS ids),
locks AS (DELETE FROM {schema}.instance_locks AS l USING removal AS d WHERE l.instance_id = ANY (d.ids)),
holds AS (DELETE FROM {schema}.holds AS h USING removal AS d WHERE h.instance_id = ANY (d.ids) RETURNING 1),
messages AS (DELETE FROM {schema}.orchestrator_queue AS q USING removal AS d WHERE q.instance_id = ANY (d.ids)
             RETURNING left(q.work_item, 13) = '{"TimerFired"' AS is_timer),
activities AS (DELETE FROM {schema}.worker_queue AS q USING removal AS d WHERE q.instance_id = ANY (d.ids) RETURNING 1),
events AS (DELETE FROM {schema}.history AS h USING removal AS d WHERE h.instance_id = ANY (d.ids) RETURNING 1),
executions AS (DELETE FROM {schema}.executions AS e USING removal AS d WHERE e.instance_id = ANY (d.ids) RETURNING 1),
stored AS (DELETE FROM {schema}.kv_store AS k USING removal AS d WHERE k.instance_id = ANY (d.ids)),
changed AS (DELETE FROM {schema}.kv_delta AS k USING removal AS d WHERE k.instance_id = ANY (d.ids)),
keys AS (DELETE FROM {schema}.message_keys AS k USING removal AS d WHERE k.instance_id = ANY (d.ids)),
instances AS (DELETE FROM {schema}.instances AS i USING removal AS d WHERE i.instance_id = ANY (d.ids) RETURNING 1)
SELECT (SELECT count(*) FROM instances) AS instances, (SELECT count(*) FROM executions) AS executions,
       (SELECT count(*) FROM events) AS events,
       (SELECT count(*) FROM messages) + (SELECT count(*) FROM activities) AS queued,
       (SELECT count(*) FROM messages WHERE NOT is_timer) + (SELECT count(*) FROM activities)
           + (SELECT count(*) FROM holds) AS in_use
