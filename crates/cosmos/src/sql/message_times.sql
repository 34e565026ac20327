SELECT c.id, c.instanceId, c.t, c.w, c.vis FROM c WHERE c.t = 'm'
