SELECT c.instanceId, c.iid, c.ct, c.del FROM c WHERE c.t = 'i' AND c.par = @parent
