SELECT c.id, c._etag, c.t FROM c WHERE ARRAY_CONTAINS(@revs, c.rev)
