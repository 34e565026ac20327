SELECT c.instanceId, c.lock, c.over FROM c WHERE c.t = 'i' AND c.at > 0 AND c.at < @never
