SELECT c.id, c.instanceId, c.iid, c.t, c.at, c.o, c.q, c.vis, c.tag, c.sid, c.lock, c.w, c.rev, c.sg
FROM c WHERE ARRAY_CONTAINS(['m', 'a', 'o'], c.t) AND c.at <= @horizon
