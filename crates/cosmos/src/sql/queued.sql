SELECT c.id, c.instanceId, c.iid, c.t, c.vis, c.lock, c.rev, c.sg, c.w
FROM c WHERE ARRAY_CONTAINS(['m', 'a'], c.t) AND c.at >= 0
