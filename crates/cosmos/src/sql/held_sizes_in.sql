SELECT c.slot, c.aside FROM c WHERE c.t = 'i' AND c.at >= @never AND ARRAY_CONTAINS(@slots, c.slot)
