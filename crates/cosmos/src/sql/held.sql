SELECT * FROM c WHERE c.t = 'i' AND IS_DEFINED(c.hold)
