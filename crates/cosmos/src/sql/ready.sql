SELECT c.id, c.instanceId, c.iid, c.t, c.at, c.o, c.q, c.vis, c.tag, c.sid, c.lock, c.w, c.rev, c.sg
FROM c WHERE c.at <= @horizon AND (
    (c.t = 'm' AND (ARRAY_CONTAINS(@turns, c.slot) OR c.at <= @turnsOverdue))
    OR (c.t = 'a' AND (@anyQueue = true OR ARRAY_CONTAINS(@queues, c.wq))
        AND (ARRAY_CONTAINS(@work, c.slot) OR c.at <= @workOverdue)))
