-- The body of commit_1, for its members, and of commit_alone_1, for its only member.
--
-- Activities: each is fenced by its row.
IF {batch}{KIND_ACTIVITY} = ANY (p_kind) OR {KIND_AHEAD} = ANY (p_kind){end}{alone}v_kind IN ({KIND_ACTIVITY}, {KIND_AHEAD}){end} THEN
    {batch}WITH done AS ({end}
    DELETE FROM {schema}.worker_queue AS q
    {using m}
    WHERE {batch}{m.kind} IN ({KIND_ACTIVITY}, {KIND_AHEAD}) AND {end}q.id {= m.activity_row} AND q.lock_token = {m.secret}
        AND q.locked_until > {schema}.now_ms()
    RETURNING {batch}m.member, q.session_id
    )
    SELECT array_agg(d.member), array_agg(d.session_id) FILTER (WHERE d.session_id IS NOT NULL)
    INTO v_members, v_sessions FROM done AS d;
    FOREACH v_one IN ARRAY coalesce(v_members, '{}') LOOP v_passed[v_one] := true; END LOOP;{end}
    {alone}CASE WHEN q.session_id IS NOT NULL THEN ARRAY[q.session_id] END INTO v_sessions;
    v_passed := FOUND;{end}
    IF v_sessions IS NOT NULL THEN
        PERFORM {schema}.touch_sessions_1(v_sessions);
    END IF;
END IF;
-- Turns that were run ahead are stored if the instance has no lease and no visible message. The row lock keeps fetches of the
-- instance out, which lock the same row after they have taken their lease: the statements below see that lease.
IF {batch}{KIND_AHEAD} = ANY (p_kind) OR {KIND_FUSED} = ANY (p_kind){end}{alone}v_passed AND v_kind = {KIND_AHEAD} OR v_kind = {KIND_FUSED}{end} THEN
    {batch}PERFORM 1{end}{alone}SELECT e.status = 'Running' AND e.last_event_id = {m.after} INTO v_turn{end} FROM {schema}.executions AS e
    {join m}
    WHERE e.instance_id {= m.instance} AND e.execution_id = {m.execution}
    {batch}AND ({m.kind} = {KIND_AHEAD} AND {passed m} OR {m.kind} = {KIND_FUSED}) ORDER BY {m.instance} COLLATE "C"{end} FOR UPDATE OF e;
    v_now := {schema}.now_ms();
    -- Fused outcomes write nothing unless all their leases are held, so no lease ends before all are known.
    IF cardinality(f_member) > 0 THEN
        {batch}SELECT array_agg(t.member) INTO v_members FROM (
        SELECT f.member, count(*) AS held{end}{alone}SELECT count(*) = p_inputs[1] INTO v_passed{end}
        FROM unnest(f_member, f_row, f_secret) AS f (member, id, secret)
        WHERE EXISTS (SELECT 1 FROM {schema}.worker_queue AS q
                      WHERE q.id = f.id AND q.lock_token = f.secret AND q.locked_until > v_now OFFSET 0)
        {batch}GROUP BY f.member) AS t WHERE t.held = p_inputs[t.member];
        FOREACH v_one IN ARRAY coalesce(v_members, '{}') LOOP v_passed[v_one] := true; END LOOP{end};
    END IF;
    {batch}SELECT array_agg(u.member) INTO v_members FROM (
    SELECT DISTINCT ON ({m.instance}) m.member {from m} WHERE {m.kind} IN ({KIND_AHEAD}, {KIND_FUSED}) AND {passed m} AND
        {m.ran_at} BETWEEN v_now - 60000 AND v_now
        AND EXISTS (SELECT 1 FROM {schema}.instances AS i
                    WHERE i.instance_id = {m.instance} AND i.current_execution_id = {m.execution} OFFSET 0)
        AND EXISTS (SELECT 1 FROM {schema}.executions AS e
                    WHERE e.instance_id = {m.instance} AND e.execution_id = {m.execution} AND e.status = 'Running'
                        AND e.last_event_id = {m.after} OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM {schema}.instance_locks AS l WHERE l.instance_id = {m.instance} OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q
                        WHERE q.instance_id = {m.instance} AND q.visible_at <= v_now OFFSET 0)
    ORDER BY {m.instance}, m.member) AS u;
    FOREACH v_one IN ARRAY coalesce(v_members, '{}') LOOP v_turn[v_one] := true; END LOOP;{end}
    {alone}v_turn := coalesce(v_turn AND v_passed AND {m.ran_at} BETWEEN v_now - 60000 AND v_now, false);
    IF v_turn THEN
        SELECT i.orchestration_name, coalesce(i.orchestration_version, 'unknown') INTO o_name, o_version FROM {schema}.instances AS i
        WHERE i.instance_id = v_instance AND i.current_execution_id = v_execution
            AND NOT EXISTS (SELECT 1 FROM {schema}.instance_locks AS l WHERE l.instance_id = v_instance OFFSET 0)
            AND NOT EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q
                            WHERE q.instance_id = v_instance AND q.visible_at <= v_now OFFSET 0);
        v_turn := FOUND;
    END IF;{end}
    -- Each activity of fused outcomes is fenced by its row. A lease that has ended since it was seen above is a conflict: the outcomes are
    -- sent again, and refused.
    IF {alone}v_turn AND {end}cardinality(f_member) > 0 THEN
        WITH done AS (
            DELETE FROM {schema}.worker_queue AS q
            USING unnest(f_member, f_row, f_secret) AS f (member, id, secret)
            WHERE {writes f} AND q.id = ANY (ARRAY[f.id]) AND q.lock_token = f.secret AND q.locked_until > {schema}.now_ms()
            RETURNING q.session_id
        )
        SELECT count(*), array_agg(d.session_id) FILTER (WHERE d.session_id IS NOT NULL) INTO v_count, v_sessions FROM done AS d;
        IF v_count <> (SELECT count(*) FROM unnest(f_member) AS f (member) WHERE {writes f}) THEN
            RAISE EXCEPTION 'a lease of fused outcomes has just ended' USING ERRCODE = 'serialization_failure';
        END IF;
        IF v_sessions IS NOT NULL THEN
            PERFORM {schema}.touch_sessions_1(v_sessions);
        END IF;
    END IF;
END IF;
-- Starts: the first turn is stored if the store knows nothing of the instance. The first lock keeps fetches and hand-offs of the
-- instance out, and the second one keeps other starts out. A start that does not get both is refused, so that no start waits for a
-- lock. The check is a statement of its own: it sees all that was stored before the locks were taken.
IF {batch}{KIND_START} = ANY (p_kind){end}{alone}v_kind = {KIND_START}{end} THEN
    {batch}SELECT array_agg(u.member) INTO v_members FROM (
    SELECT DISTINCT ON ({m.instance}) m.member, {m.instance} AS instance_id {from m} WHERE {m.kind} = {KIND_START}
    ORDER BY {m.instance}, m.member) AS u
    WHERE pg_try_advisory_xact_lock(hashtextextended(u.instance_id, {seed}))
        AND pg_try_advisory_xact_lock(hashtextextended(u.instance_id, {seed} + 1));{end}
    {alone}v_turn := pg_try_advisory_xact_lock(hashtextextended(v_instance, {seed}))
        AND pg_try_advisory_xact_lock(hashtextextended(v_instance, {seed} + 1));{end}
    v_now := {schema}.now_ms();
    {batch}SELECT array_agg(m.member) INTO v_members {from m} WHERE m.member = ANY (v_members) AND{end}{alone}v_turn := v_turn AND{end}
        {m.after} = 0 AND {m.ran_at} BETWEEN v_now - 60000 AND v_now
        AND NOT EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = {m.instance} OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = {m.instance} OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM {schema}.instance_locks AS l WHERE l.instance_id = {m.instance} OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM {schema}.executions AS e WHERE e.instance_id = {m.instance} OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM {schema}.history AS h
                        WHERE h.instance_id = {m.instance} AND h.execution_id = 1 OFFSET 0);
    {batch}FOREACH v_one IN ARRAY coalesce(v_members, '{}') LOOP
        v_turn[v_one] := true;
        v_passed[v_one] := true;
    END LOOP;{end}
    {alone}v_passed := v_turn;{end}
END IF;
-- Turns under a lease: each is fenced by it. After the turns ahead and the starts, which must see these leases.
IF {batch}{KIND_TURN} = ANY (p_kind){end}{alone}v_kind = {KIND_TURN}{end} THEN
    {batch}WITH freed AS ({end}
    DELETE FROM {schema}.instance_locks AS l
    {using m}
    WHERE {batch}{m.kind} = {KIND_TURN} AND {end}l.instance_id {= m.instance} AND l.lock_token = {m.secret}
        AND l.locked_until > {schema}.now_ms()
    RETURNING {batch}m.member, l.has_aside, l.covers
    )
    SELECT array_agg(f.member), array_agg(f.member) FILTER (WHERE f.covers IS NOT NULL),
           array_agg(f.covers::text) FILTER (WHERE f.covers IS NOT NULL), array_agg(p_instance[f.member]) FILTER (WHERE f.has_aside)
    INTO v_members, v_partial, v_covers, v_aside FROM freed AS f;
    v_wanted := 0;
    FOREACH v_one IN ARRAY coalesce(v_members, '{}') LOOP
        v_passed[v_one] := true;
        v_turn[v_one] := true;
        v_wanted := v_wanted + (p_inputs[v_one] > 0 AND (v_partial IS NULL OR v_one <> ALL (v_partial)))::integer;
    END LOOP;
    WITH consumed AS (
        DELETE FROM {schema}.orchestrator_queue AS q
        {using m}
        WHERE {m.kind} = {KIND_TURN} AND v_turn[m.member] AND (v_partial IS NULL OR m.member <> ALL (v_partial))
            AND q.instance_id {= m.instance} AND q.lock_token = {m.secret}
        RETURNING m.member
    )
    -- Turns whose messages are not those that they fetched, and turns that have lost all of them.
    SELECT count(*) FILTER (WHERE t.messages <> p_inputs[t.member])
           + v_wanted - count(*) FILTER (WHERE p_inputs[t.member] > 0)
    INTO v_count FROM (SELECT c.member, count(*) AS messages FROM consumed AS c GROUP BY c.member) AS t;
    -- Partial turns, whose leases name their messages.
    FOR v_one, v_covered IN SELECT p.member, p.covers FROM unnest(v_partial, v_covers) AS p (member, covers) LOOP
        DELETE FROM {schema}.orchestrator_queue AS q WHERE q.id = ANY (v_covered::bigint[]) AND q.lock_token = p_secret[v_one];
        GET DIAGNOSTICS v_found = ROW_COUNT;
        v_count := v_count + (v_found <> p_inputs[v_one])::integer;
    END LOOP;{end}
    {alone}CASE WHEN l.has_aside THEN ARRAY[v_instance] END, l.covers INTO v_aside, v_covers;
    v_passed := FOUND;
    v_turn := v_passed;
    v_count := 0;
    IF v_passed THEN
        IF v_covers IS NULL THEN
            DELETE FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = v_instance AND q.lock_token = v_secret;
        ELSE
            DELETE FROM {schema}.orchestrator_queue AS q WHERE q.id = ANY (v_covers) AND q.lock_token = v_secret;
        END IF;
        GET DIAGNOSTICS v_count = ROW_COUNT;
        v_count := (v_count <> p_inputs[1])::integer;
    END IF;{end}
    IF v_count <> 0 THEN
        RAISE EXCEPTION 'consuming messages: % turns have other messages than they fetched', v_count USING ERRCODE = 'OL001';
    END IF;
    IF v_aside IS NOT NULL THEN
        PERFORM {schema}.keep_places_1(v_aside);
    END IF;
END IF;

{batch}v_wanted := cardinality(array_positions(v_turn, true));{end}
IF {batch}v_wanted > 0{end}{alone}v_turn{end} THEN
    {turn_writes}
END IF;
-- Outcomes that are stored without a turn.
IF {batch}cardinality(array_positions(v_passed, true)) > v_wanted{end}{alone}v_passed AND NOT v_turn{end} THEN
    INSERT INTO {schema}.orchestrator_queue (instance_id, work_item, visible_at, available_at, begins, origin)
    SELECT {m.instance}, {m.completion}, v_now, v_now, false, nullif({m.secret}, '')
    {from m}
    WHERE {m.completion} IS NOT NULL{batch} AND {m.kind} <> {KIND_TURN} AND {passed m} AND NOT {turn m} ORDER BY m.member{end};
END IF;

-- Messages that came meanwhile count. A turn ahead has seen that there are none after it has locked its execution; since then every
-- fetch sees them, because the turn has no lease.
v_seen := greatest(v_now, {schema}.now_ms());
{batch}RETURN QUERY SELECT m.member,
    CASE WHEN NOT {passed m} OR {m.kind} = {KIND_FUSED} AND NOT {turn m} THEN {COMMIT_REFUSED}
         WHEN {m.kind} = {KIND_AHEAD} AND NOT {turn m} THEN {COMMIT_QUEUED} ELSE {COMMIT_DONE} END, v_now,
    {m.kind} <> {KIND_ACTIVITY} AND EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q
                                            WHERE q.instance_id = {m.instance} AND q.visible_at <= v_seen OFFSET 0),
    NULL::bigint, NULL::bytea, NULL::text, NULL::text, NULL::text, NULL::bigint
{from m};{end}
{alone}o_member := 1;
o_answer := CASE WHEN NOT v_passed OR v_kind = {KIND_FUSED} AND NOT v_turn THEN {COMMIT_REFUSED}
                 WHEN v_kind = {KIND_AHEAD} AND NOT v_turn THEN {COMMIT_QUEUED} ELSE {COMMIT_DONE} END;
o_at := v_now;
o_more := false;
IF v_kind <> {KIND_ACTIVITY} AND NOT (v_turn AND v_kind IN ({KIND_AHEAD}, {KIND_FUSED})) THEN
    o_more := EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = v_instance AND q.visible_at <= v_seen);
END IF;
IF v_turn AND v_ended THEN
    SELECT i.custom_status, i.custom_status_version INTO o_custom_status, o_custom_version
    FROM {schema}.instances AS i WHERE i.instance_id = v_instance;
END IF;{end}
