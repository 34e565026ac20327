SELECT {schema}.enqueue_once_1($1, $2, $3, $4, $5, $6)
