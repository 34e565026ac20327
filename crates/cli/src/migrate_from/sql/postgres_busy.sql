-- Live leases at $1.
SELECT ((SELECT count(*) FROM {schema}.instance_locks WHERE locked_until > $1::text::bigint)
      + (SELECT count(*) FROM {schema}.worker_queue WHERE lock_token IS NOT NULL AND locked_until > $1::text::bigint))::text, '0'
