SELECT c.id, c._etag, c.t, c.rev, c._ts FROM c WHERE ARRAY_CONTAINS(['m', 'a', 'n'], c.t)
