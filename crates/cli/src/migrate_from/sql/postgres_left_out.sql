-- Activities without an instance, which no orchestration awaits.
SELECT count(*)::text FROM {schema}.worker_queue AS w
WHERE NOT EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = w.instance_id)
