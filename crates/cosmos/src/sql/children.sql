SELECT c.instanceId, c.iid, c.ct FROM c WHERE c.t = 'i' AND c.par = @parent
