-- Whether an instance is held, whether it has ended, and the end of the lease of a running turn. x'' is the token of a delay, which
-- is no turn.
SELECT EXISTS (SELECT 1 FROM holds WHERE instance_id = ?1),
       EXISTS (SELECT 1 FROM instances AS i
               JOIN executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
               WHERE i.instance_id = ?1 AND e.status IN ('Completed', 'Failed')),
       (SELECT locked_until FROM instance_locks WHERE instance_id = ?1 AND lock_token <> x'' AND locked_until > ?2)
