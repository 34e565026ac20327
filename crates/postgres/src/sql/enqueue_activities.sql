SELECT {schema}.enqueue_work_1($1, $2, $3, $4, $5, $6)
