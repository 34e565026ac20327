-- The writes of a turn, as a part of commit_body.sql: for the members of commit_1 whose turn is written, and for the one of commit_alone_1.
IF {batch}cardinality(array_remove(p_name, NULL)) > 0{end}{alone}v_name IS NOT NULL{end} THEN
    INSERT INTO {schema}.instances AS i
        (instance_id, orchestration_name, orchestration_version, current_execution_id, parent_instance_id, created_at, updated_at)
    SELECT {m.instance}, {m.name}, {m.version}, {m.execution}, {m.parent}, v_now, v_now
    {from m}
    WHERE {writes m} AND {m.name} IS NOT NULL AND {m.version} IS NOT NULL
    ON CONFLICT (instance_id) DO UPDATE
    SET orchestration_name = excluded.orchestration_name, orchestration_version = excluded.orchestration_version,
        current_execution_id = greatest(i.current_execution_id, excluded.current_execution_id),
        updated_at = excluded.updated_at;
END IF;
IF true = ANY (p_raises) THEN
    UPDATE {schema}.instances AS i SET current_execution_id = {m.execution}, updated_at = v_now
    {from m}
    WHERE {writes m} AND {m.raises} AND i.instance_id {= m.instance} AND i.current_execution_id < {m.execution};
    GET DIAGNOSTICS v_count = ROW_COUNT;
    SELECT count(*) - v_count INTO v_count {from m} WHERE {writes m} AND {m.raises};
    IF v_count <> 0 THEN
        RAISE EXCEPTION 'raising executions missed % rows', v_count USING ERRCODE = 'OL001';
    END IF;
END IF;
-- Executions that are there, and those that begin. A tool may have appended events to one that is not there yet.
-- A lone start has seen that no execution is there, so it updates none.
{batch}WITH changed AS ({end}{alone}v_begins := v_kind = {KIND_START};
IF NOT v_begins THEN{end}
UPDATE {schema}.executions AS e
SET status = coalesce({m.status}, e.status),
    output = CASE WHEN {m.status} IS NULL THEN e.output ELSE {m.output} END,
    completed_at = CASE WHEN {m.status} IS NULL THEN e.completed_at WHEN {m.ended} THEN v_now END,
    updated_at = v_now,
    last_event_id = greatest(e.last_event_id, {m.last_event}),
    terminal_event_id = coalesce(e.terminal_event_id, {m.terminal}),
    pinned_version = coalesce({m.pin}, e.pinned_version),
    pinned_key = coalesce({m.pin_key}, e.pinned_key)
{from m}
WHERE {writes m} AND e.instance_id {= m.instance} AND e.execution_id = {m.execution}
{batch}RETURNING m.member)
SELECT coalesce(array_agg(c.member), '{}') INTO v_members FROM changed AS c{end};
{alone}v_begins := NOT FOUND;
END IF;{end}
IF {batch}cardinality(v_members) < v_wanted{end}{alone}v_begins{end} THEN
    INSERT INTO {schema}.executions
        (instance_id, execution_id, status, output, started_at, completed_at, updated_at, last_event_id, terminal_event_id,
         pinned_version, pinned_key)
    SELECT {m.instance}, {m.execution}, coalesce({m.status}, 'Running'), CASE WHEN {m.status} IS NOT NULL THEN {m.output} END,
           v_now, CASE WHEN {m.ended} THEN v_now END, v_now,
           greatest({m.last_event}, (SELECT max(h.event_id) FROM {schema}.history AS h
                                     WHERE h.instance_id = {m.instance} AND h.execution_id = {m.execution})),
           {m.terminal}, {m.pin}, {m.pin_key}
    {from m}
    WHERE {writes m}{batch} AND m.member <> ALL (v_members){end};
END IF;
IF cardinality(h_member) > 0 THEN
    INSERT INTO {schema}.history (instance_id, execution_id, event_id, event_type, event_data)
    SELECT {of h.instance}, {of h.execution}, h.event_id, h.event_type, h.event_data
    FROM unnest(h_member, h_event, h_type, h_data) AS h (member, event_id, event_type, event_data)
    WHERE {writes h};
END IF;
IF true = ANY (p_sets_status) THEN
    UPDATE {schema}.instances AS i
    SET custom_status = {m.custom_status}, custom_status_version = i.custom_status_version + 1
    {from m}
    WHERE {writes m} AND {m.sets_status} AND i.instance_id {= m.instance};
END IF;
IF true = ANY (p_clears) THEN
    SELECT array_agg({m.instance}) INTO v_names {from m} WHERE {writes m} AND {m.clears};
    UPDATE {schema}.kv_delta AS d SET value = NULL, last_updated_at_ms = v_now WHERE d.instance_id = ANY (v_names);
    INSERT INTO {schema}.kv_delta (instance_id, key, value, last_updated_at_ms)
    SELECT s.instance_id, s.key, NULL, v_now FROM {schema}.kv_store AS s WHERE s.instance_id = ANY (v_names)
    ON CONFLICT (instance_id, key) DO NOTHING;
END IF;
IF cardinality(k_member) > 0 THEN
    INSERT INTO {schema}.kv_delta (instance_id, key, value, last_updated_at_ms)
    SELECT {of k.instance}, k.key, k.value, coalesce(k.at, v_now)
    FROM unnest(k_member, k_key, k_value, k_at) AS k (member, key, value, at)
    WHERE {writes k}
    ON CONFLICT (instance_id, key) DO UPDATE
    SET value = excluded.value, last_updated_at_ms = excluded.last_updated_at_ms;
END IF;
IF {batch}true = ANY (p_ended){end}
    {alone}v_ended AND EXISTS (SELECT 1 FROM {schema}.kv_delta AS d WHERE d.instance_id = v_instance){end} THEN
    SELECT array_agg({m.instance}) INTO v_names {from m}
    WHERE {writes m} AND {m.ended}
        AND EXISTS (SELECT 1 FROM {schema}.kv_delta AS d WHERE d.instance_id = {m.instance} OFFSET 0);
    IF v_names IS NOT NULL THEN
        INSERT INTO {schema}.kv_store (instance_id, key, value, last_updated_at_ms)
        SELECT d.instance_id, d.key, d.value, d.last_updated_at_ms FROM {schema}.kv_delta AS d
        WHERE d.instance_id = ANY (v_names) AND d.value IS NOT NULL
        ON CONFLICT (instance_id, key) DO UPDATE
        SET value = excluded.value, last_updated_at_ms = excluded.last_updated_at_ms;
        DELETE FROM {schema}.kv_store AS s USING {schema}.kv_delta AS d
        WHERE s.instance_id = ANY (v_names) AND d.instance_id = ANY (v_names) AND d.value IS NULL
            AND s.instance_id = d.instance_id AND s.key = d.key;
        DELETE FROM {schema}.kv_delta AS d WHERE d.instance_id = ANY (v_names);
    END IF;
END IF;
IF cardinality(a_member) > 0 THEN
    {alone}IF cardinality(a_member) = 1 THEN
        INSERT INTO {schema}.worker_queue
            (work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag, lock_token, locked_until, attempt_count)
        VALUES (a_item[1], v_now, a_instance[1], a_execution[1], a_activity[1], a_session[1], a_tag[1], a_secret[1],
                CASE WHEN a_secret[1] IS NOT NULL THEN {schema}.now_ms() + a_lock_ms[1] END, (a_secret[1] IS NOT NULL)::integer)
        RETURNING id, lock_token INTO o_id, o_secret;
        IF o_secret IS NULL THEN
            o_name := NULL;
            o_version := NULL;
        ELSIF v_name IS NOT NULL AND v_version IS NOT NULL THEN
            o_name := v_name;
            o_version := v_version;
        ELSIF o_name IS NULL THEN
            SELECT i.orchestration_name, coalesce(i.orchestration_version, 'unknown') INTO o_name, o_version
            FROM {schema}.instances AS i WHERE i.instance_id = a_instance[1];
        END IF;
    ELSE
        INSERT INTO {schema}.worker_queue (work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag)
        SELECT w.item, v_now, w.instance_id, w.execution_id, w.activity_id, w.session_id, w.tag
        FROM unnest(a_item, a_instance, a_execution, a_activity, a_session, a_tag) WITH ORDINALITY
            AS w (item, instance_id, execution_id, activity_id, session_id, tag, n)
        ORDER BY w.n;
    END IF;{end}
    {batch}RETURN QUERY
    WITH stored AS (
        INSERT INTO {schema}.worker_queue
            (work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag, lock_token, locked_until, attempt_count)
        SELECT w.item, v_now, w.instance_id, w.execution_id, w.activity_id, w.session_id, w.tag,
               w.secret, CASE WHEN w.secret IS NOT NULL THEN {schema}.now_ms() + w.lock_ms END, (w.secret IS NOT NULL)::integer
        FROM unnest(a_member, a_item, a_instance, a_execution, a_activity, a_session, a_tag, a_secret, a_lock_ms)
            WITH ORDINALITY
            AS w (member, item, instance_id, execution_id, activity_id, session_id, tag, secret, lock_ms, n)
        WHERE v_turn[w.member] ORDER BY w.n
        RETURNING worker_queue.id, worker_queue.lock_token, worker_queue.instance_id
    )
    SELECT NULL::integer, NULL::integer, v_now, false, s.id, s.lock_token,
           i.orchestration_name, coalesce(i.orchestration_version, 'unknown'), NULL::text, NULL::bigint
    FROM stored AS s
    LEFT JOIN LATERAL (SELECT i.orchestration_name, i.orchestration_version FROM {schema}.instances AS i
                       WHERE i.instance_id = s.instance_id LIMIT 1) AS i ON true
    WHERE s.lock_token IS NOT NULL;{end}
END IF;
IF cardinality(c_member) > 0 THEN
    DELETE FROM {schema}.worker_queue AS q
    USING unnest(c_member, c_instance, c_execution, c_activity) AS c (member, instance_id, execution_id, activity_id)
    WHERE {writes c} AND q.instance_id = ANY (ARRAY[c.instance_id])
        AND q.execution_id = c.execution_id AND q.activity_id = c.activity_id;
END IF;
IF cardinality(m_member) > 0 THEN
    INSERT INTO {schema}.orchestrator_queue (instance_id, work_item, visible_at, available_at, begins)
    SELECT q.instance_id, q.item, greatest(q.not_before, v_now), greatest(q.not_before, v_now), q.begins
    FROM unnest(m_member, m_instance, m_item, m_not_before, m_begins) WITH ORDINALITY
        AS q (member, instance_id, item, not_before, begins, n)
    WHERE {writes q} ORDER BY q.n;
END IF;
