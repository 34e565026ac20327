SELECT c.slot FROM c WHERE c.t = 'i' AND c.st = 'Running' AND ARRAY_CONTAINS(@slots, c.slot)
