DELETE FROM kv_store
WHERE instance_id = ?1
  AND key IN (SELECT key FROM kv_delta WHERE instance_id = ?1 AND value IS NULL)
