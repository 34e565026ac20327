SELECT c.instanceId, c.lock, c.hold, c.over FROM c WHERE c.t = 'i' AND c.at > 0
