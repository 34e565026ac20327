SELECT c.instanceId, c.iid, c.hold FROM c WHERE c.t = 'i' AND c.at >= @never
