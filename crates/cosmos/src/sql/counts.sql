SELECT c.instanceId, c.iid, c.st, c.nx, c.ne, c.del FROM c WHERE c.t = 'i'
