SELECT c.instanceId, c.iid, c.ct FROM c WHERE c.t = 'i' AND c.st = @status ORDER BY c.ct DESC
