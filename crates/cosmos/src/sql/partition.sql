SELECT c.id, c._etag, c.t, c.q FROM c WHERE c.t != 'i' AND c.t != 'b' AND c.t != 'z'
