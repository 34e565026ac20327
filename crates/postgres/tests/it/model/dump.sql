-- Every row, one line each, as MemoryProvider::dump prints them.
-- A turn that concerns its execution only stores its time in the execution.
SELECT format('instance %s %s %s %s %s %s %s %s %s', i.instance_id, i.orchestration_name, i.orchestration_version,
    i.current_execution_id, {schema}.shown_option(i.parent_instance_id), {schema}.shown_option(i.custom_status),
    i.custom_status_version, i.created_at, greatest(i.updated_at, (
        SELECT max(e.updated_at) FROM {schema}.executions AS e WHERE e.instance_id = i.instance_id)))
FROM {schema}.instances AS i
UNION ALL
SELECT format('execution %s %s %s %s %s %s %s', instance_id, execution_id, status, {schema}.shown_option(output), started_at,
    coalesce('Some(' || completed_at || ')', 'None'), {schema}.shown_option(pinned_version))
FROM {schema}.executions
UNION ALL
SELECT format('history %s %s %s %s', instance_id, execution_id, to_char(event_id, 'FM00000'), event_data)
FROM {schema}.history
UNION ALL
SELECT format('message %s %s %s %s %s %s %s', q.instance_id, {schema}.shown_time(q.available_at), {schema}.shown_time(q.visible_at),
    {schema}.shown_time(CASE WHEN q.lock_token IS NULL THEN q.visible_at ELSE l.locked_until END),
    (q.lock_token IS NOT NULL)::text, q.attempt_count, q.work_item)
FROM {schema}.orchestrator_queue AS q LEFT JOIN {schema}.instance_locks AS l ON l.instance_id = q.instance_id
UNION ALL
-- A row without a token holds no lease.
SELECT format('lease %s %s', l.instance_id, {schema}.shown_time(l.locked_until)) FROM {schema}.instance_locks AS l
WHERE l.lock_token IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {schema}.holds AS h WHERE h.instance_id = l.instance_id)
UNION ALL
SELECT format('lease %s %s', instance_id, {schema}.shown_time(rest_until)) FROM {schema}.holds WHERE rest_until IS NOT NULL
UNION ALL
SELECT format('hold %s %s %s %s %s', instance_id, kind, {schema}.shown(actor), {schema}.shown(reason), held_at) FROM {schema}.holds
UNION ALL
SELECT format('work %s %s %s %s %s %s %s %s %s %s %s %s', instance_id, execution_id, activity_id, {schema}.shown_time(visible_at),
    (lock_token IS NOT NULL)::text, {schema}.shown_time(coalesce(locked_until, 0)), attempt_count,
    failures, {schema}.shown_option(last_error), {schema}.shown_option(session_id), {schema}.shown_option(tag), work_item)
FROM {schema}.worker_queue
UNION ALL
SELECT format('session %s %s %s %s', session_id, worker_id, {schema}.shown_time(locked_until), last_activity_at)
FROM {schema}.sessions
UNION ALL
SELECT format('kv %s %s %s %s', instance_id, {schema}.shown(key), {schema}.shown(value), last_updated_at_ms)
FROM {schema}.kv_store
UNION ALL
SELECT format('kv-delta %s %s %s %s', instance_id, {schema}.shown(key), {schema}.shown_option(value), last_updated_at_ms)
FROM {schema}.kv_delta
UNION ALL
SELECT format('dead %s %s %s %s', queue, coalesce(instance_id, ''), attempt_count, work_item) FROM {schema}.dead_letters

-- Contradictions in columns that copy other rows to save reads of them.
UNION ALL
SELECT format('contradiction %s last_event_id is not the last event', e.instance_id) FROM {schema}.executions AS e
WHERE e.last_event_id <> coalesce((
    SELECT max(h.event_id) FROM {schema}.history AS h
    WHERE h.instance_id = e.instance_id AND h.execution_id = e.execution_id), 0)
UNION ALL
SELECT format('contradiction %s terminal_event_id is not an event that ends', e.instance_id) FROM {schema}.executions AS e
WHERE e.terminal_event_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM {schema}.history AS h
    WHERE h.instance_id = e.instance_id AND h.execution_id = e.execution_id AND h.event_id = e.terminal_event_id
        AND h.event_type IN ('OrchestrationCompleted', 'OrchestrationFailed', 'OrchestrationContinuedAsNew'))
UNION ALL
SELECT format('contradiction %s half pinned', instance_id) FROM {schema}.executions
WHERE (pinned_version IS NULL) <> (pinned_key IS NULL)
UNION ALL
SELECT format('contradiction %s an event of another type', instance_id) FROM {schema}.history
WHERE CASE WHEN event_data LIKE '{"%' THEN (event_data::jsonb ->> 'type') <> event_type END
UNION ALL
SELECT format('contradiction %s a covered message without its lease', q.instance_id) FROM {schema}.orchestrator_queue AS q
WHERE q.lock_token IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM {schema}.instance_locks AS l WHERE l.instance_id = q.instance_id AND l.lock_token = q.lock_token)
UNION ALL
SELECT format('contradiction %s a message set aside that no fetch finds', q.instance_id) FROM {schema}.orchestrator_queue AS q
WHERE q.is_aside AND NOT EXISTS (SELECT 1 FROM {schema}.holds AS h WHERE h.instance_id = q.instance_id)
    AND (q.visible_at > $1 OR NOT EXISTS (
        SELECT 1 FROM {schema}.instance_locks AS l WHERE l.instance_id = q.instance_id AND l.has_aside))
UNION ALL
SELECT format('contradiction %s a hold without its rest', h.instance_id) FROM {schema}.holds AS h
WHERE NOT EXISTS (SELECT 1 FROM {schema}.instance_locks AS l
                  WHERE l.instance_id = h.instance_id AND l.lock_token = '' AND l.locked_until = 9223372036854775807 AND l.has_aside)
UNION ALL
SELECT format('contradiction %s a rest without an end or a hold', l.instance_id) FROM {schema}.instance_locks AS l
WHERE l.locked_until = 9223372036854775807
    AND NOT EXISTS (SELECT 1 FROM {schema}.holds AS h WHERE h.instance_id = l.instance_id)
UNION ALL
SELECT format('contradiction %s a place in line without a message', l.instance_id) FROM {schema}.instance_locks AS l
WHERE l.lock_token IS NULL AND NOT EXISTS (
    SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = l.instance_id AND q.is_aside)
UNION ALL
SELECT format('contradiction %s a lease that names other messages than it covers', l.instance_id) FROM {schema}.instance_locks AS l
JOIN {schema}.orchestrator_queue AS q ON q.instance_id = l.instance_id
WHERE l.covers IS NOT NULL AND (q.lock_token IS NOT NULL AND q.lock_token = l.lock_token) <> (q.id = ANY (l.covers))
UNION ALL
SELECT format('contradiction %s a message that is wrong about what it begins', instance_id) FROM {schema}.orchestrator_queue
WHERE CASE WHEN work_item LIKE '{"%' THEN begins <> (work_item::jsonb ?| ARRAY['StartOrchestration', 'ContinueAsNew']) END
UNION ALL
SELECT format('contradiction %s an activity half leased', instance_id) FROM {schema}.worker_queue
WHERE (lock_token IS NULL) <> (locked_until IS NULL)
UNION ALL
SELECT format('contradiction %s an unmarked activity that waits for its time', instance_id) FROM {schema}.worker_queue
WHERE visible_at > $1 AND NOT delayed
UNION ALL
SELECT format('contradiction %s a leased activity that is marked as waiting', instance_id) FROM {schema}.worker_queue
WHERE delayed AND lock_token IS NOT NULL
