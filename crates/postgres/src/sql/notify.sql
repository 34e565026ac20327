SELECT {schema}.notify_1($1, $2, $3, $4, $5)
