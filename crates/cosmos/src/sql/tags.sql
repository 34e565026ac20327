SELECT c.id, c.instanceId, c.iid, c.t, c.vis, c.lock, c.rev, c.sg, c.w, c.tag FROM c WHERE c.t = 'a'
