SELECT c.id, c._etag, c.t, c.rev, c._ts FROM c WHERE c.t != 'i' AND c.t != 'b' AND c.t != 'z'
