SELECT c.instanceId FROM c WHERE c.t = 'i' AND c.st = 'Running'
