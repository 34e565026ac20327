SELECT c.instanceId, c.iid, c.ct, c.del FROM c WHERE c.t = 'i' AND c.ct > 0 ORDER BY c.ct DESC
