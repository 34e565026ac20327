SELECT q.id, q.work_item FROM {schema}.orchestrator_queue AS q WHERE q.id = ANY ($1) AND q.lock_token = $2
