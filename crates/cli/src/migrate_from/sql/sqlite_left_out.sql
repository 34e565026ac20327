-- Activities without an instance, which no orchestration awaits.
SELECT CAST(count(*) AS TEXT) FROM worker_queue WHERE instance_id IS NULL OR instance_id NOT IN (SELECT instance_id FROM instances)
