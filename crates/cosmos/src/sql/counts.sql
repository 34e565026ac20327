SELECT c.st, c.nx, c.ne, c.ct, c.del FROM c WHERE c.t = 'i'
